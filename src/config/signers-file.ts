import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { resolve, sep } from "node:path";

/** The keys of the file that ALLOWED_SIGNERS names: they may sign commits. */
export interface Signers {
  /** Lines in the format of allowed_signers(5). */
  readonly ssh: readonly SshSigner[];
  /** Armored GPG public keys. */
  readonly pgp: readonly string[];
}

export interface SshSigner {
  readonly line: string;
  /** As ssh-keygen prints it: `SHA256:…`. */
  readonly fingerprint: string;
  /** Milliseconds since 1970, from `valid-after` and `valid-before`; null: no limit. */
  readonly validFromMs: number | null;
  readonly validUntilMs: number | null;
}

const pgpBlock = /-----BEGIN PGP PUBLIC KEY BLOCK-----[\s\S]*?-----END PGP PUBLIC KEY BLOCK-----/g;

/**
 * Reads the file with the keys that may sign commits.
 *
 * @returns the keys, or a sentence on what is wrong with the file, which begins with ALLOWED_SIGNERS
 */
export function readSigners(path: string, repoPath: string): Signers | string {
  const named = `ALLOWED_SIGNERS is ${JSON.stringify(path)}`;
  try {
    const text = readFileSync(path, "utf8");
    if (isWithin(path, repoPath)) {
      return `${named}, which is inside the repository: anyone who can push could add a key. Move it out of REPO_PATH.`;
    }
    const signers = parseSigners(text);
    return typeof signers === "string" ? `${named}, ${signers}` : signers;
  } catch (error) {
    return `${named}, which cannot be read (${(error as NodeJS.ErrnoException).code ?? "unknown error"}).`;
  }
}

/** Neither the path nor the file that it leads to may be in the repository. */
function isWithin(path: string, repoPath: string): boolean {
  const roots = [resolve(repoPath), real(repoPath)];
  return [resolve(path), real(path)].some((one) =>
    roots.some((root) => `${one}${sep}`.startsWith(root + sep)),
  );
}

function real(path: string): string {
  try {
    return realpathSync(path);
  } catch {
    return resolve(path);
  }
}

function parseSigners(text: string): Signers | string {
  const pgp = text.match(pgpBlock) ?? [];
  const rest = text.replace(pgpBlock, (block) => block.replace(/.+/g, "")).split("\n");
  const ssh: SshSigner[] = [];
  for (const [index, line] of rest.entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const signer = parseLine(line.trim());
    if (signer === null) {
      return `whose line ${index + 1} is neither "principals [options] keytype key" of allowed_signers nor part of a PGP public key block.`;
    }
    ssh.push(signer);
  }
  return ssh.length + pgp.length === 0 ? "which has no key: nothing could be deployed." : { ssh, pgp };
}

/** `principals [options] keytype key [comment]`; names and options may be quoted. */
function parseLine(line: string): SshSigner | null {
  const words = line.match(/(?:"[^"]*"|[^\s"])+/g) ?? [];
  const typeIndex = words.findIndex((word, index) => index > 0 && /^(?:ssh|ecdsa|sk)-[\w@.-]+$/.test(word));
  const [type = "", key = ""] = typeIndex < 0 ? [] : words.slice(typeIndex);
  const blob = Buffer.from(key, "base64");
  const isKey = blob.length > 4 && blob.subarray(4, 4 + blob.readUInt32BE(0)).toString() === type;
  if (typeIndex > 2 || !isKey) return null;
  const options = typeIndex === 2 ? (words[1] ?? "") : "";
  const [validFromMs, validUntilMs] = ["valid-after", "valid-before"].map((name) => instantOf(options, name));
  if (validFromMs === undefined || validUntilMs === undefined) return null;
  const digest = createHash("sha256").update(blob).digest("base64").replace(/=+$/, "");
  return { line, fingerprint: `SHA256:${digest}`, validFromMs, validUntilMs };
}

/** The value of an option: YYYYMMDD[HHMM[SS]] in the time zone of this machine, or UTC with Z; undefined: another form. */
function instantOf(options: string, name: string): number | null | undefined {
  if (!options.toLowerCase().includes(`${name}=`)) return null;
  const found = new RegExp(`${name}="(\\d{4})(\\d\\d)(\\d\\d)(?:(\\d\\d)(\\d\\d)(\\d\\d)?)?(Z?)"`, "i").exec(
    options,
  );
  if (!found) return undefined;
  const [, year, month, day, hours = "00", minutes = "00", seconds = "00", zone = ""] = found;
  const ms = new Date(
    `${year}-${month}-${day}T${hours}:${minutes}:${seconds}${zone.toUpperCase()}`,
  ).getTime();
  return Number.isNaN(ms) ? undefined : ms;
}
