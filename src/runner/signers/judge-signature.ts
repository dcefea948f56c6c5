import type { Signers } from "../../config/signers-file.ts";
import { printable } from "../../platform/terminal/printable.ts";
import type { Problem } from "../../problems.ts";

/** Whose signature a commit has, or what is wrong with it; `detail` names the key as git's tools do, or is empty. */
export type SignatureVerdict =
  | { readonly kind: "good"; readonly signer: string }
  | { readonly kind: SignatureFault; readonly detail: string };

export type SignatureFault = "unsigned" | "unknown" | "expired" | "revoked" | "bad";

export interface RawSignature {
  /** The output of `git verify-commit --raw`: the status lines of gpg, or the output of ssh-keygen. */
  readonly lines: readonly string[];
  /** Whether it exited with 0. */
  readonly isGood: boolean;
  readonly signers: Signers;
  /** Fingerprints of the GPG keys that are allowed. */
  readonly pgpKeys: readonly string[];
}

/** Reads the output of git's tools about the signature of a commit. A signature that is not known to be good is a fault. */
export function judgeSignature(raw: RawSignature): SignatureVerdict {
  const status = raw.lines
    .filter((line) => line.startsWith("[GNUPG:] "))
    .map((line) => line.slice(9).split(" "));
  return status.length > 0 ? judgePgp(raw, status) : judgeSsh(raw);
}

function judgePgp(
  { isGood, pgpKeys }: RawSignature,
  status: readonly (readonly string[])[],
): SignatureVerdict {
  const find = (...names: readonly string[]) => status.find(([name = ""]) => names.includes(name));
  const [, keyId = "", ...owner] =
    find("GOODSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "BADSIG", "ERRSIG") ?? [];
  // The last field is the fingerprint of the primary key, which identifies a key.
  const primary = find("VALIDSIG")?.at(-1) ?? "";
  if (isGood && pgpKeys.includes(primary))
    return { kind: "good", signer: printable(decoded(owner.join(" "))) };
  const detail = `GPG key ${printable(keyId)}`;
  if (find("REVKEYSIG")) return { kind: "revoked", detail };
  if (find("EXPSIG", "EXPKEYSIG")) return { kind: "expired", detail };
  return { kind: find("BADSIG") ? "bad" : "unknown", detail };
}

/** gpg percent-encodes special characters. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function judgeSsh({ lines, isGood, signers }: RawSignature): SignatureVerdict {
  const text = lines.join("\n");
  const [, signer] = /^Good "git" signature for (.+) with \S+ key /m.exec(text) ?? [];
  if (isGood && signer !== undefined) return { kind: "good", signer: printable(signer) };
  const [, key = "", fingerprint = ""] = /^Good "git" signature with (\S+) key (\S+)/m.exec(text) ?? [];
  if (text.includes("incorrect signature")) return { kind: "bad", detail: "" };
  if (text.includes("not permitted"))
    return { kind: "unknown", detail: "its line allows other namespaces than git" };
  // This is all that ssh-keygen prints for a key that the file of revoked keys names.
  if (text.includes("Could not verify signature")) return { kind: "revoked", detail: "" };
  const detail = printable(`${key} key ${fingerprint}`);
  const known = signers.ssh.find((one) => one.fingerprint === fingerprint);
  const hasLimit = known !== undefined && (known.validFromMs !== null || known.validUntilMs !== null);
  return { kind: hasLimit ? "expired" : "unknown", detail };
}

const advice: Readonly<Record<SignatureFault, readonly [Problem["code"], string, string]>> = {
  unsigned: [
    "commit_unsigned",
    "is not signed",
    "Sign it and push again: git commit --amend --no-edit --gpg-sign; git config commit.gpgSign true signs all later ones.",
  ],
  unknown: [
    "signer_unknown",
    "is signed by a key that is not allowed",
    "Find out who pushed it. If you trust the key, add it to that file; else sign the commit with a key that is in it.",
  ],
  expired: [
    "signer_expired",
    "is signed by a key that is not valid now, or was not when it signed",
    "Renew the key, put it into that file, and sign the commit with it.",
  ],
  revoked: [
    "signer_revoked",
    "is signed by a key that was revoked",
    "Find out who pushed it: somebody may use a stolen key. Sign the commit with another key.",
  ],
  bad: [
    "signature_bad",
    "has a signature that does not match its content",
    "Find out who pushed it: the commit was changed after it was signed.",
  ],
};

/** Why a commit may not be deployed, and what to do. */
export function signatureProblem(
  fault: SignatureFault,
  {
    commit,
    signersPath,
    key,
  }: { readonly commit: string; readonly signersPath: string; readonly key: string },
): Problem {
  const [code, what, next] = advice[fault];
  const named = key === "" ? "" : ` (${key})`;
  const detail = `Commit ${commit.slice(0, 7)} ${what}${named}. ALLOWED_SIGNERS is ${signersPath}. Nothing was run. ${next}`;
  return { code, detail };
}
