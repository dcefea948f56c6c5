import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

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

export interface GpgKey extends SigningKey {
  /** Revokes the key. @returns the public key with the revocation */
  readonly revoke: () => string;
}

/** @param expires when it expires, as gpg takes it; `2y` if not given */
export function makeGpgKey(scope: Scope, expires = "2y"): GpgKey {
  const home = temporaryDirectory(scope);
  const gpg = (args: readonly string[], input = "") =>
    execFileSync("gpg", ["--homedir", home, "--batch", "--quiet", "--pinentry-mode", "loopback", ...args], {
      ...{ encoding: "utf8", stdio: "pipe", input },
    });
  scope.after(() => execFileSync("gpgconf", ["--homedir", home, "--kill", "all"]));
  gpg([
    "--passphrase",
    "",
    "--quick-generate-key",
    "Git Host <noreply@git.example>",
    "ed25519",
    "sign",
    expires,
  ]);
  const listed = gpg(["--with-colons", "--list-keys"]);
  const fingerprint = /^fpr:+([0-9A-F]{40}):/m.exec(listed)?.[1] ?? "";
  const program = join(home, "sign");
  writeScript(program, `#!/bin/sh\nexec gpg --homedir '${home}' --batch --pinentry-mode loopback "$@"\n`);
  const exported = () => gpg(["--armor", "--export", fingerprint]);
  return {
    publicKey: exported(),
    gitOptions: ["-c", `gpg.program=${program}`, ...signingWith("openpgp", fingerprint)],
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
