/**
 * `node test/words.ts`, part of `npm run lint`: names and words that are often misspelled, in code and documents. Prints
 * each place with the right spelling, and exits with 1 if there is one.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const spellings: readonly (readonly [RegExp, string])[] = [
  [/\bGithub\b/, "GitHub"],
  [/(?<!-)\bGitlab\b/, "GitLab"],
  [/\bBitBucket\b/, "Bitbucket"],
  [/\b(?:Javascript|Typescript)\b/, "JavaScript, TypeScript"],
  [/\bsuper[cs]eeded\b|\bsuperceded\b/i, "superseded"],
  [/\brecieve/i, "receive"],
  [/\bseperat/i, "separat"],
  [/\boccured\b|\boccurence/i, "occurred, occurrence"],
  [/\bsucces(?:ful|ion)\b|\bsuccessfull\b/i, "successful"],
  [/\bneccess|\bnecces|\bnecesary/i, "necessary"],
  [/\bexistan|\bindependan|\bdependanc/i, "existence, independent, dependency"],
  [/\bcancell?ation\b(?<!cancellation)/i, "cancellation"],
  [
    /\b(?:teh|adress|wich|untill|wether|definit[ae]ly(?<!definitely))\b/i,
    "the, address, which, until, whether",
  ],
  // A line that holds more than it says.
  [/\.\.\.\{ \w/, "the members one by one, without a spread"],
];

const root = join(import.meta.dirname, "..");
const files = [
  "{src,test,bench,demo,examples,bin}/**/*.{ts,js,sh,yml,yaml,conf,service}",
  "{*,docs/*,.github/**/*}.{md,yml}",
  "{bin/hotpush,.ci/run}",
];

/** @returns a line for each misspelled word of `text` */
function misspelledIn(file: string, text: string): readonly string[] {
  return text.split("\n").flatMap((line, index) =>
    spellings.flatMap(([wrong, right]) => {
      const found = wrong.exec(line)?.[0];
      return found === undefined ? [] : [`${file}:${index + 1}: "${found}". Write: ${right}.`];
    }),
  );
}

if (import.meta.main) {
  const paths = globSync(files, { cwd: root, exclude: ["test/fixtures/**", "test/words*"] }).sort();
  const faults = paths.flatMap((path) => misspelledIn(path, readFileSync(join(root, path), "utf8")));
  for (const fault of faults) console.error(fault);
  process.exitCode = faults.length > 0 ? 1 : 0;
}
