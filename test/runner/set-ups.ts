import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, rmSync, symlinkSync, unlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { ProblemCode } from "../../src/problems.ts";
import { nobody } from "../harness/requirements.ts";
import { quickScript } from "../harness/service.ts";
import { writeScript } from "../harness/temporary.ts";

/** The directory of a set-up, removed after the test. */
export interface Place {
  /** What REPO_PATH is set to. */
  readonly repoPath: string;
  readonly scriptPath: string;
  /** The service's TMPDIR. */
  readonly temporaryPath: string;
  /** Another directory for files. */
  readonly besidePath: string;
}

/** A fault that prevents the start of a script, and the advice of its message. */
export interface BrokenSetUp {
  readonly name: string;
  readonly code: ProblemCode;
  /** The fix in the message. */
  readonly cure: RegExp;
  /** Whether the service runs as `nobody`, because root may do everything. */
  readonly isUnprivileged?: boolean;
  readonly make: (place: Place) => void;
  /** Does what the message says. */
  readonly repair: (place: Place, cure: RegExpExecArray) => void;
}

export const brokenPlaces: readonly BrokenSetUp[] = [
  {
    name: "a repository directory that does not exist",
    code: "repository_missing",
    cure: /Clone the repository there, mount it, or set REPO_PATH\.$/,
    make: () => {},
    repair: (place) => makeRepository(place),
  },
  {
    name: "a file in place of the repository directory",
    code: "repository_missing",
    cure: /is no directory\. Clone/,
    make: ({ repoPath }) => writeFileSync(repoPath, ""),
    repair(place) {
      unlinkSync(place.repoPath);
      makeRepository(place);
    },
  },
  {
    name: "a repository directory of another user that nobody else may enter",
    code: "repository_not_accessible",
    cure: /Run: (chown -R \d+ \S+)$/,
    isUnprivileged: true,
    make(place) {
      makeRepository(place);
      chmodSync(place.repoPath, 0o700);
    },
    repair: runInShell,
  },
  {
    name: "a git repository of another user",
    code: "repository_dubious_ownership",
    cure: /Run: (chown -R \d+ [^\s;]+); or/,
    make: makeRepositoryOfAnother,
    repair: runInShell,
  },
  {
    name: "a git repository of another user, cured by trusting them",
    code: "repository_dubious_ownership",
    cure: /trust that user, run: (git config --global --add safe\.directory \S+)$/,
    make: makeRepositoryOfAnother,
    repair: runInShell,
  },
  {
    name: "a link in place of the directory for the script's own log",
    code: "temporary_directory_unusable",
    cure: /Run: (rm -rf [^\s;]+); or set TMPDIR/,
    make(place) {
      makeRepository(place);
      symlinkSync(place.besidePath, logDirectory(place));
    },
    repair: runInShell,
  },
  {
    name: "a directory for the script's own log that belongs to another user",
    code: "temporary_directory_unusable",
    cure: /Run: (rm -rf [^\s;]+); or set TMPDIR/,
    make(place) {
      makeRepository(place);
      mkdirSync(logDirectory(place));
      chownSync(logDirectory(place), nobody, nobody);
    },
    repair: runInShell,
  },
  {
    name: "a directory for the script's own log to which all may write",
    code: "temporary_directory_unusable",
    cure: /Run: (rm -rf [^\s;]+); or set TMPDIR/,
    make(place) {
      makeRepository(place);
      mkdirSync(logDirectory(place));
      chmodSync(logDirectory(place), 0o777);
    },
    repair: runInShell,
  },
  {
    name: "a temporary directory that is a file",
    code: "temporary_directory_unusable",
    cure: /Make (\S+) writable for this user \(uid \d+\), or set TMPDIR/,
    make(place) {
      makeRepository(place);
      rmSync(place.temporaryPath, { recursive: true });
      writeFileSync(place.temporaryPath, "");
    },
    repair({ temporaryPath }) {
      unlinkSync(temporaryPath);
      mkdirSync(temporaryPath);
    },
  },
];

export function makeRepository({ repoPath, scriptPath }: Place, script = quickScript): void {
  mkdirSync(repoPath);
  writeScript(scriptPath, script);
}

function makeRepositoryOfAnother(place: Place): void {
  makeRepository(place);
  execFileSync("git", ["-C", place.repoPath, "init", "--quiet"]);
  execFileSync("chown", ["-R", String(nobody), place.repoPath]);
}

function logDirectory({ temporaryPath }: Place): string {
  return join(temporaryPath, `hotpush-${process.getuid?.()}`);
}

/** Runs the command that the message gives, as the person who reads it would: in a shell. */
export function runInShell({ besidePath }: Place, [, command = "false"]: RegExpExecArray): void {
  execFileSync("sh", ["-c", command], { env: { ...process.env, HOME: besidePath } });
}
