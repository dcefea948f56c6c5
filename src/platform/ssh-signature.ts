import { createHash } from "node:crypto";
import { existsSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeScratch } from "./files.ts";
import { type Argv, hasSucceeded, runCommand } from "./run-command.ts";

const timeoutMs = 10_000;

/**
 * Makes an Ed25519 key that only this user can read, unless there is one. The caller makes sure that no other process does the
 * same.
 *
 * @returns the public key, as `ssh-ed25519 AAAA…`
 * @throws Error with what ssh-keygen said
 */
export async function makeSigningKey(path: string): Promise<string> {
  if (!existsSync(path)) {
    // A key that was written in part would never be replaced.
    using scratch = makeScratch(`${path}-`);
    const made = join(scratch.path, "key");
    await sshKeygen(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f", made]);
    renameSync(made, path);
  }
  const [type = "", key = ""] = (await sshKeygen(["-y", "-P", "", "-f", path])).split(" ");
  return `${type} ${key}`;
}

/** The fingerprint of a public key, as ssh-keygen prints it: `SHA256:…`. */
export function keyFingerprint(publicKey: string): string {
  const blob = Buffer.from(publicKey.split(" ")[1] ?? "", "base64");
  return `SHA256:${createHash("sha256").update(blob).digest("base64").replace(/=+$/, "")}`;
}

const armour = ["-----BEGIN SSH SIGNATURE-----", "-----END SSH SIGNATURE-----"] as const;

/**
 * Signs `text` for the purpose `namespace` with the key at `path`.
 *
 * @returns the signature as ssh-keygen writes it, in base64, without the lines around it
 * @throws Error with what ssh-keygen said
 */
export async function signWithSsh(path: string, namespace: string, text: string): Promise<string> {
  const lines = (await sshKeygen(["-Y", "sign", "-q", "-f", path, "-n", namespace], text)).split("\n");
  return lines.filter((line) => !armour.some((one) => one === line)).join("");
}

/** Who must have signed what, and for which purpose. */
type Signed = Readonly<Record<"publicKey" | "namespace" | "text", string>>;

/** Whether a signature of `signWithSsh` is that of this key over this text. @throws Error if there is no ssh-keygen */
export async function isSignedWithSsh(
  signature: string,
  { publicKey, namespace, text }: Signed,
): Promise<boolean> {
  using scratch = makeScratch();
  const signers = join(scratch.path, "signers");
  const written = join(scratch.path, "signature");
  writeFileSync(signers, `key ${publicKey}\n`);
  writeFileSync(written, `${[armour[0], signature, armour[1]].join("\n")}\n`);
  const files = ["-f", signers, "-s", written];
  const argv = ["ssh-keygen", "-Y", "verify", "-q", "-I", "key", "-n", namespace, ...files] as const;
  const ending = await runCommand({ argv, input: text, timeoutMs });
  if (ending.kind === "not_found") throw new Error("ssh-keygen is not installed");
  return hasSucceeded(ending);
}

async function sshKeygen(args: readonly string[], input = ""): Promise<string> {
  const argv: Argv = ["ssh-keygen", ...args];
  const ending = await runCommand({ argv, input, timeoutMs });
  if (hasSucceeded(ending)) return ending.output.trim();
  throw new Error(
    ending.kind === "not_found" ? "ssh-keygen is not installed" : ending.lastLines.join(" ") || ending.kind,
  );
}
