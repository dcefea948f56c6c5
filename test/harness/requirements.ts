import "./environment.ts";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

interface Requirement {
  readonly isThere: () => boolean;
  readonly reason: string;
}

/** Requirements that not every machine meets. */
const probes = {
  mount: { isThere: canMount, reason: "it mounts file systems, which takes root" },
  root: { isThere: () => process.getuid?.() === 0, reason: "it does what only root may" },
  otherUser: {
    isThere: canBeAnother,
    reason: "it runs this checkout as another user, who must be able to read it",
  },
  sshd: program("sshd, of the package openssh-server", "test", "-x", "/usr/sbin/sshd"),
  ext4: program("mkfs.ext4, of the package e2fsprogs", "mkfs.ext4", "-V"),
  tmux: program("tmux", "tmux", "-V"),
  zsh: program("zsh", "zsh", "--version"),
  fish: program("fish", "fish", "--version"),
  strace: program("strace", "strace", "-qq", "-o", "/dev/null", "true"),
  fail2ban: program("fail2ban-regex, of the package fail2ban", "fail2ban-regex", "--version"),
  shellcheck: program("shellcheck", "shellcheck", "--version"),
  // Version 250 is the first that judges a unit of a file.
  systemd: program("systemd-analyze 250", "systemd-analyze", "security", "--offline=yes", "--help"),
  prometheus: program("prometheus", "promtool", "--version"),
  age: program("age", "age", "--version"),
  gitLfs: program("git-lfs", "git", "lfs", "version"),
  prlimit: program("prlimit, of util-linux", "prlimit", "--version"),
} as const satisfies Readonly<Record<string, Requirement>>;

function program(name: string, ...command: readonly [string, ...string[]]): Requirement {
  return { isThere: () => runs(...command), reason: `it needs ${name}` };
}

/** Requirements that may be missing even if CI is set. */
const dispensable = /^(?:otherUser|systemd|tmux|zsh|fish|prometheus|gitLfs|age)$/;

/**
 * Options of `test` that skip it if a requirement is missing. If CI is set, a requirement that could be installed is not
 * skipped: the test fails.
 */
export function needs(...names: readonly (keyof typeof probes)[]): { readonly skip: string | false } {
  const mayBeMissing = names.filter((name) => dispensable.test(name) || !process.env.CI);
  return {
    skip: mayBeMissing.map((name) => probes[name]).find(({ isThere }) => !isThere())?.reason ?? false,
  };
}

function runs(program: string, ...args: readonly string[]): boolean {
  return spawnSync(program, args, { stdio: "ignore" }).status === 0;
}

function canMount(): boolean {
  const path = mkdtempSync(join(tmpdir(), "hotpush-test-"));
  const isMounted = runs("mount", "-t", "tmpfs", "tmpfs", path);
  if (isMounted) runs("umount", path);
  rmdirSync(path);
  return isMounted;
}

function canBeAnother(): boolean {
  return runs(...becomeNobody, process.execPath, "--check", import.meta.filename);
}

/** The user and the group that own nothing, on any Debian. */
export const nobody = 65_534;

/** A prefix that runs a command line as them. */
export const becomeNobody = ["setpriv", `--reuid=${nobody}`, `--regid=${nobody}`, "--clear-groups"] as const;
