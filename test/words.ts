/**
 * `node test/words.ts`, part of `npm run lint`: checks the words of comments, texts and documents. Prints each place with
 * the words to write instead, and exits with 1 if there is one. With `--rates`, it prints the rate of each rule too.
 */
import { globSync, readFileSync } from "node:fs";
import { extname, join } from "node:path";

interface Rule {
  readonly words: RegExp;
  readonly instead: string;
  /** How often per 1,000 words of all files it may occur; 0 by default. */
  readonly rate?: number;
}

/** Rates are those of well-written projects; all other words have a plainer one. */
const rules: readonly Rule[] = [
  { words: /\b[Ww]here\b/g, rate: 1, instead: '"if" for a condition, "when" for a moment' },
  { words: /\b(tells?|telling|told)\b/gi, rate: 0.3, instead: "report, log, notify, show" },
  { words: /\b(of|by|with|from) which\b/gi, rate: 0.4, instead: "whose, or a sentence of its own" },
  { words: /\b(is|are) to (be|go)\b/gi, rate: 0.06, instead: "must, will" },
  { words: /(?<=[.!]\s+([*#] |\/\/ )?)Wh(at|o)(ever)? (?![^.]*\?)/g, instead: "the actor and the verb" },
  { words: /\bmend(s|ed|ing)?\b/gi, instead: "fix, resolve" },
  { words: /\banew\b/gi, instead: "again; recreate" },
  { words: /\bwho(so)?ever\b/gi, instead: "anyone who" },
  { words: /\bheal(s|ed|ing)?\b/gi, instead: "recover, reconcile" },
  { words: /\brehears\w*/gi, instead: "dry run" },
  { words: /\btake-overs?\b/gi, instead: "leader election" },
  { words: /\bhand-overs?\b/gi, instead: "self-update" },
  { words: /\bg(iv(e|es|ing)|ave)[ -]way\b/gi, instead: "be replaced; lower priority" },
  { words: /\bse(e|es|en|eing)[ -]through\b/gi, instead: "wait for" },
  { words: /\b(story)?tellers?\b/gi, instead: "printer, writer" },
  { words: /\bblueprints?\b/gi, instead: "container spec" },
  { words: /\bspellings?\b/gi, instead: "encoding, form" },
  { words: /\b(un)?masking\b/gi, instead: "redaction" },
  { words: /\bsurroundings\b/gi, instead: "context, environment" },
  { words: /\bcom(e|es|ing) to hand\b/gi, instead: "be found" },
  { words: /\b(must|can) bear\b/gi, instead: "must be idempotent, must tolerate" },
  { words: /\bbe found out\b/gi, instead: "be determined" },
  { words: /\b(all|everything) that is wrong\b/gi, instead: "all errors" },
  { words: /\b(?<!there )is no (usable|valid|manager|push|file|directory|number)\b/gi, instead: "is not a" },
  { words: /\b(become|became|becomes|came) of\b/gi, instead: "the result of, what happens to" },
  { words: /\b(ends?|ended) (well|badly)\b/gi, instead: "succeed, fail" },
  { words: /\bt(ake|akes|ook|aken|aking) away\b/gi, instead: "remove" },
  { words: /\b(all the same|lest|be it)\b/gi, instead: "still; so that … not; even" },
];

const root = join(import.meta.dirname, "..");
const files = [
  "{src,test,bench,demo,examples,bin}/**/*.{ts,js,mjs,sh,yml,yaml,conf,service}",
  "{*,docs/*,.github/**/*}.{md,yml}",
  "{.,test/**,examples/**}/{Dockerfile,Caddyfile}",
  "{bin/hotpush,.ci/run}",
];
const regex = /(?<=[=(,:!&|?{[;]\s*|return |=> )\/(?![*/])(?:\\.|\[(?:\\.|[^\]\\\n])*\]|[^/\\\n])+\/\w*/;
const literal = /\/\/.*|\/\*[\s\S]*?\*\/|`(?:\\.|[^`\\])*`|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/;

/** @returns for each rule, the places of its words in the texts, by their file names; and the number of all words */
export function findWords(texts: Readonly<Record<string, string>>) {
  const proses = Object.entries(texts).map(([file, text]) => [file, proseOf(extname(file), text)] as const);
  const wordCount = proses.reduce((sum, [, prose]) => sum + (prose.match(/[a-z]{2,}/gi)?.length ?? 0), 0);
  const found = rules.map((rule) => {
    const places = proses.flatMap(([file, prose]) =>
      Array.from(prose.matchAll(rule.words), ({ 0: word, index }) => {
        const line = prose.slice(0, index).split("\n").length;
        return `${file}:${line}: "${word.trim()}". Write: ${rule.instead}.`;
      }),
    );
    return { rule, places, rate: (places.length * 1_000) / wordCount };
  });
  return { found, wordCount };
}

/** The places to change: of words that occur more often than they may. */
export function faultsIn(texts: Readonly<Record<string, string>>): readonly string[] {
  return findWords(texts).found.flatMap(({ rule, places, rate }) => (rate > (rule.rate ?? 0) ? places : []));
}

/** Comments and texts alone. Each line keeps its number. */
function proseOf(extension: string, text: string): string {
  if (extension === ".md") return text.replace(/^```[\s\S]*?^```$|`[^`\n]*`/gm, blank);
  if (!/^\.(ts|m?js)$/.test(extension)) return text.replace(/^(?!\s*#).*$/gm, "");
  const all = new RegExp(`${regex.source}|(${literal.source})|[^]`, "g");
  return text.replace(all, (match, prose: string | undefined) =>
    prose !== undefined && /^\/|[a-z]+[,.:;]? [a-z]+/i.test(prose)
      ? prose.replace(/\$\{[^}]*\}/g, blank)
      : blank(match),
  );
}

function blank(text: string): string {
  return text.replace(/[^\n]+/g, " ");
}

if (import.meta.main) {
  const paths = globSync(files, { cwd: root, exclude: ["test/fixtures/**", "test/words*"] }).sort();
  const texts = Object.fromEntries(paths.map((path) => [path, readFileSync(join(root, path), "utf8")]));
  if (process.argv.includes("--rates"))
    for (const { rule, rate } of findWords(texts).found)
      console.log(`${rate.toFixed(2)}  ${rule.words.source}`);
  const faults = faultsIn(texts);
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
