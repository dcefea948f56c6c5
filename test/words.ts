/**
 * `node test/words.ts`, part of `npm run lint`: names and words that are often misspelled, in code and documents. Prints
 * each place with the right spelling, and exits with 1 if there is one.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const spellings: readonly (readonly [RegExp, string])[] = [
  [/\bGithub\b|(?<!-)\bGitlab\b|\bBitBucket\b/, "GitHub, GitLab, Bitbucket"],
  [/\b(?:Javascript|Typescript)\b/, "JavaScript, TypeScript"],
  [/\bsuper[cs]eeded\b|\bsuperceded\b/i, "superseded"],
  [/\brecieve|\bseperat|\boccured\b|\boccurence/i, "receive, separate, occurred, occurrence"],
  [/\bsucces(?:ful|ion)\b|\bsuccessfull\b|\bneccess|\bnecces/i, "successful, necessary"],
  [/\b(?:teh|adress|wich|untill|wether)\b|\bdependanc/i, "the, address, which, until, whether, dependency"],
  // A line that holds more than it says.
  [/\.\.\.\{ \w/, "the members one by one, without a spread"],
];

const root = join(import.meta.dirname, "..");
const files = [
  "{src,test,bench,demo,examples,bin}/**/*.{ts,js,sh,yml,yaml,conf,service}",
  "{*,docs/*,.github/**/*}.{md,yml}",
  "{bin/hotpush,.ci/run}",
];

for (const file of globSync(files, { cwd: root, exclude: ["test/fixtures/**", "test/words*"] }).sort())
  for (const [index, line] of readFileSync(join(root, file), "utf8").split("\n").entries())
    for (const [wrong, right] of spellings) {
      const found = wrong.exec(line)?.[0];
      if (found === undefined) continue;
      console.error(`${file}:${index + 1}: "${found}". Write: ${right}.`);
      process.exitCode = 1;
    }
