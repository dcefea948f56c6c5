import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

/** A repository that a service deploys, and its remote. */
export type Project = ReturnType<typeof makeProject>;

/** A bare repository, a clone of it as REPO_PATH, and another clone to push from. */
export function makeProject(scope: Scope) {
  const root = temporaryDirectory(scope);
  const [remotePath, repoPath, workPath] = ["remote.git", "repository", "work"].map((name) =>
    join(root, name),
  ) as [string, string, string];
  git(root, "init", "--quiet", "--bare", "--initial-branch=main", remotePath);
  git(root, "clone", "--quiet", remotePath, workPath);
  git(workPath, "switch", "--quiet", "--orphan", "main");
  /**
   * Pushes a commit with this message and these files to the remote, signed if there is a key. Files that begin with `#!` are
   * executable. @returns its id
   */
  const push = (message: string, files: Readonly<Record<string, string>> = {}, key?: SigningKey | null) => {
    for (const [name, text] of Object.entries(files)) {
      mkdirSync(dirname(join(workPath, name)), { recursive: true });
      const write = text.startsWith("#!") ? writeScript : writeFileSync;
      write(join(workPath, name), text);
    }
    git(workPath, "add", "--all");
    git(workPath, ...(key?.gitOptions ?? []), "commit", "--quiet", "--allow-empty", "--message", message);
    git(workPath, "push", "--quiet", "--force", "origin", "main");
    return git(workPath, "rev-parse", "HEAD");
  };
  /** The same with an empty commit. */
  const commit = () => push("a change");
  commit();
  git(root, "clone", "--quiet", remotePath, repoPath);
  const script = (text: string) => void writeScript(join(repoPath, "deploy.sh"), text);
  script("#!/bin/sh\nexit 0\n");
  return { remotePath, repoPath, workPath, commit, push, script };
}

/** Runs git in `directory`, with an identity to commit with. */
export function git(directory: string, ...args: readonly string[]): string {
  const identity = ["-c", "user.name=Test", "-c", "user.email=test@example.com"];
  return execFileSync("git", ["-C", directory, ...identity, ...args], {
    encoding: "utf8",
    stdio: "pipe",
  }).trim();
}

/** Makes an empty git repository in a temporary directory, with the branch `main`; `name` is the name of its directory. */
export function makeRepository(scope: Scope, name = "shop") {
  const directory = join(temporaryDirectory(scope), name);
  mkdirSync(directory);
  const own = (...args: readonly string[]) => git(directory, ...args);
  own("init", "--quiet", "--initial-branch=main");
  const write = (path: string, text: string) => {
    mkdirSync(dirname(join(directory, path)), { recursive: true });
    writeFileSync(join(directory, path), text);
  };
  /** Commits everything. @returns the commit */
  const commit = (message = "A change") => {
    own("add", "--all");
    own("commit", "--quiet", "--allow-empty", "--message", message);
    return own("rev-parse", "HEAD");
  };
  return { directory, git: own, write, commit };
}

/** A real key, with git's options to sign with it. */
export interface SigningKey {
  /** For SSH keys `type key`, for GPG keys an armored block. */
  readonly publicKey: string;
  /** Options of git, before its command. */
  readonly gitOptions: readonly string[];
}

export function makeSshKey(scope: Scope): SigningKey {
  const path = join(temporaryDirectory(scope), "key");
  execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path]);
  return {
    publicKey: readFileSync(`${path}.pub`, "utf8").trim(),
    gitOptions: signingWith("ssh", path),
  };
}

/** An SSH certificate that an authority has signed, valid from and until what `validity` says (`ssh-keygen -V`). */
export function makeSshCertificate(scope: Scope, validity: string) {
  const directory = temporaryDirectory(scope);
  const path = (name: string) => join(directory, name);
  for (const name of ["authority", "key"])
    execFileSync("ssh-keygen", ["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", path(name)]);
  const identity = ["-I", "ada", "-n", "ada@example.com", "-V", validity];
  execFileSync("ssh-keygen", ["-q", "-s", path("authority"), ...identity, path("key.pub")]);
  return {
    authority: readFileSync(path("authority.pub"), "utf8").trim(),
    certificate: readFileSync(path("key-cert.pub"), "utf8").trim(),
    gitOptions: signingWith("ssh", path("key-cert.pub")),
  };
}

export function makeGpgKey(scope: Scope) {
  const home = temporaryDirectory(scope);
  const gpg = (args: readonly string[], input = "") =>
    execFileSync("gpg", ["--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", ...args], {
      encoding: "utf8",
      stdio: "pipe",
      input,
    });
  scope.after(() => execFileSync("gpgconf", ["--homedir", home, "--kill", "all"]));
  const owner = "Git Host <noreply@git.example>";
  gpg(["--passphrase", "", "--quick-generate-key", owner, "ed25519", "sign", "2y"]);
  const listed = gpg(["--with-colons", "--list-keys"]);
  const fingerprint = /^fpr:+([0-9A-F]{40}):/m.exec(listed)?.[1] ?? "";
  const program = join(home, "sign");
  writeScript(program, `#!/bin/sh\nexec gpg --homedir '${home}' --batch --pinentry-mode loopback "$@"\n`);
  const exported = () => gpg(["--armor", "--export", fingerprint]);
  return {
    publicKey: exported(),
    gitOptions: ["-c", `gpg.program=${program}`, ...signingWith("openpgp", fingerprint)],
    /** @returns the public key with its revocation */
    revoke() {
      // gpg puts a colon before the revocation certificate of each key, against accidental import.
      const path = join(home, "openpgp-revocs.d", `${fingerprint}.rev`);
      gpg(["--import"], readFileSync(path, "utf8").replace(":-----BEGIN", "-----BEGIN"));
      return exported();
    },
  };
}

function signingWith(format: string, key: string): readonly string[] {
  return ["-c", `gpg.format=${format}`, "-c", `user.signingKey=${key}`, "-c", "commit.gpgSign=true"];
}
