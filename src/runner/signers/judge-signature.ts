import type { Signers } from "../../config/signers-file.ts";
import { printable } from "../../platform/terminal/printable.ts";

/** Whose signature a commit has, or what is wrong with it; `detail` names the key as git's tools do, or is empty. */
export type Verdict =
  | { readonly kind: "good"; readonly signer: string }
  | { readonly kind: SignatureFault; readonly detail: string };

export type SignatureFault = "unsigned" | "unknown" | "expired" | "revoked" | "bad";

export interface RawSignature {
  /** What `git verify-commit --raw` printed: gpg's status lines, or what ssh-keygen said. */
  readonly lines: readonly string[];
  /** Whether it exited with 0. */
  readonly isGood: boolean;
  readonly signers: Signers;
  /** Fingerprints of the GPG keys that are allowed. */
  readonly pgpKeys: readonly string[];
}

/** Reads what git's tools said of the signature of a commit. Whatever is not known to be good is a fault. */
export function judgeSignature(raw: RawSignature): Verdict {
  const status = raw.lines
    .filter((line) => line.startsWith("[GNUPG:] "))
    .map((line) => line.slice(9).split(" "));
  return status.length > 0 ? judgePgp(raw, status) : judgeSsh(raw);
}

function judgePgp({ isGood, pgpKeys }: RawSignature, status: readonly (readonly string[])[]): Verdict {
  const find = (...names: readonly string[]) => status.find(([name = ""]) => names.includes(name));
  const [, keyId = "", ...owner] =
    find("GOODSIG", "EXPSIG", "EXPKEYSIG", "REVKEYSIG", "BADSIG", "ERRSIG") ?? [];
  // The last field is the primary key, by whose fingerprint a key is known.
  const primary = find("VALIDSIG")?.at(-1) ?? "";
  if (isGood && pgpKeys.includes(primary))
    return { kind: "good", signer: printable(decoded(owner.join(" "))) };
  const detail = `GPG key ${printable(keyId)}`;
  if (find("REVKEYSIG")) return { kind: "revoked", detail };
  if (find("EXPSIG", "EXPKEYSIG")) return { kind: "expired", detail };
  return { kind: find("BADSIG") ? "bad" : "unknown", detail };
}

/** gpg percent-encodes what is not plain. */
function decoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function judgeSsh({ lines, isGood, signers }: RawSignature): Verdict {
  const text = lines.join("\n");
  const [, signer] = /^Good "git" signature for (.+) with \S+ key /m.exec(text) ?? [];
  if (isGood && signer !== undefined) return { kind: "good", signer: printable(signer) };
  const [, key = "", fingerprint = ""] = /^Good "git" signature with (\S+) key (\S+)/m.exec(text) ?? [];
  if (text.includes("incorrect signature")) return { kind: "bad", detail: "" };
  if (text.includes("not permitted"))
    return { kind: "unknown", detail: "its line allows other namespaces than git" };
  // Of a revoked key, which the file names, ssh-keygen says nothing more.
  if (text.includes("Could not verify signature")) return { kind: "revoked", detail: "" };
  const detail = printable(`${key} key ${fingerprint}`);
  const known = signers.ssh.find((one) => one.fingerprint === fingerprint);
  const hasLimit = known !== undefined && (known.validFromMs !== null || known.validUntilMs !== null);
  return { kind: hasLimit ? "expired" : "unknown", detail };
}
