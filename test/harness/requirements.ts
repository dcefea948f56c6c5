import "./environment.ts";
import { spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, rmdirSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/** Requirements that not every machine meets. */
const probes = {
  mount: { isThere: canMount, reason: "it mounts file systems, which takes root" },
  ext4: { isThere: () => runs("mkfs.ext4", "-V"), reason: "it needs mkfs.ext4, of the package e2fsprogs" },
  root: {
    isThere: () => process.getuid?.() === 0,
    reason: "it attaches to a running process, which takes root",
  },
  otherUser: {
    isThere: canBeAnother,
    reason: "it runs this checkout as another user, who must be able to read it",
  },
  tmux: { isThere: () => runs("tmux", "-V"), reason: "it needs tmux" },
  zsh: { isThere: () => runs("zsh", "--version"), reason: "it needs zsh" },
  fish: { isThere: () => runs("fish", "--version"), reason: "it needs fish" },
  strace: { isThere: () => runs("strace", "-qq", "-o", "/dev/null", "true"), reason: "it needs strace" },
  fail2ban: {
    isThere: () => runs("fail2ban-regex", "--version"),
    reason: "it needs fail2ban-regex, of the package fail2ban",
  },
  shellcheck: { isThere: () => runs("shellcheck", "--version"), reason: "it needs shellcheck" },
  nginx: { isThere: () => runs("nginx", "-v"), reason: "it needs nginx, of the package nginx-light" },
  openssl: { isThere: () => runs("openssl", "version"), reason: "it needs openssl" },
  sshd: {
    isThere: () => existsSync("/usr/sbin/sshd"),
    reason: "it needs sshd, of the package openssh-server",
  },
  // Version 250 is the first that judges a unit of a file.
  systemd: {
    isThere: () => runs("systemd-analyze", "security", "--offline=yes", "--help"),
    reason: "it needs systemd-analyze 250 or newer",
  },
  prometheus: {
    isThere: () => runs("prometheus", "--version") && runs("promtool", "--version"),
    reason: "it needs prometheus and promtool, of the package prometheus",
  },
  age: { isThere: () => runs("age", "--version"), reason: "it needs age" },
  gitLfs: { isThere: () => runs("git", "lfs", "version"), reason: "it needs git-lfs" },
  prlimit: { isThere: () => runs("prlimit", "--version"), reason: "it needs prlimit, of util-linux" },
} as const;

/** Requirements that may be missing even if CI is set. */
const dispensable: readonly string[] = [
  "otherUser",
  "systemd",
  "tmux",
  "zsh",
  "fish",
  "prometheus",
  "gitLfs",
  "age",
];

/**
 * Options of `test` that skip it if a requirement is missing. If CI is set, a requirement that could be installed is not
 * skipped: the test fails.
 */
export function needs(...names: readonly (keyof typeof probes)[]): { readonly skip: string | false } {
  const mayBeMissing = names.filter((name) => dispensable.includes(name) || !process.env.CI);
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
