import { createHash, randomBytes } from "node:crypto";

/** 256 bits: nobody finds one by trying (NIST SP 800-63B asks for 112). */
const secretBytes = 32;

/** The beginning says what it is, for people and for scanners that look for secrets in code. */
export type CredentialKind = "link" | "session" | "token";

const prefixes: Readonly<Record<CredentialKind, string>> = {
  link: "hpl_",
  session: "hps_",
  token: "hpt_",
};

export function makeCredential(kind: CredentialKind): string {
  return `${prefixes[kind]}${randomBytes(secretBytes).toString("base64url")}`;
}

/** @returns null if it is none that Hotpush makes */
export function credentialKind(credential: string): CredentialKind | null {
  const [, prefix] = /^(hp[lst]_)[\w-]{43}$/.exec(credential) ?? [];
  const kinds = Object.keys(prefixes) as CredentialKind[];
  return kinds.find((kind) => prefixes[kind] === prefix) ?? null;
}

/** Without a salt: nothing about 256 random bits can be precomputed. */
export function hashOf(credential: string): string {
  return createHash("sha256").update(credential).digest("hex");
}
