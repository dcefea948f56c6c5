import { join } from "node:path";
import { statOf } from "#platform/files";
import type { Store } from "#platform/sqlite";
import { isSignedWithSsh, keyFingerprint, makeSigningKey, signWithSsh } from "#platform/ssh-signature";
import type { DeploymentReport } from "#rollout/report";
import type { SiteRequests } from "#site-requests";
import { readVersion } from "#version";
import { type Deployment, liveCommit } from "./deployment.ts";

/**
 * The receipt of a deployment: a statement of in-toto (v1) in an envelope of DSSE, signed by the server's own key.
 * https://github.com/in-toto/attestation/tree/main/spec/v1, https://github.com/secure-systems-lab/dsse
 */
export interface Receipt {
  readonly payloadType: typeof payloadType;
  /** The statement's JSON in base64. */
  readonly payload: string;
  /** One: an SSH signature, and the fingerprint of its key. */
  readonly signatures: readonly { readonly keyid: string; readonly sig: string }[];
}

const payloadType = "application/vnd.in-toto+json";
const predicateType = "urn:hotpush:receipt:v1";
/** A signature for this is none for anything else: not of a commit, and not for a login. */
const namespace = "hotpush-receipt";

/** What a receipt states. */
export type Statement = ReturnType<typeof statementOf>;

function statementOf(deployment: Deployment, signer: string | null, report: Reported) {
  const { id, project, trigger, ref, requests } = deployment;
  const commit = liveCommit(deployment);
  const images = report.images?.flatMap(({ service, image, id: imageId }) => {
    const [, sha256] = /sha256:([0-9a-f]{64})$/.exec(imageId) ?? [];
    return sha256 === undefined ? [] : [{ name: service, digest: { sha256 }, annotations: { image } }];
  });
  return {
    _type: "https://in-toto.io/Statement/v1",
    subject: [{ name: ref, digest: { gitCommit: commit } }, ...(images ?? [])],
    predicateType,
    predicate: {
      deployment: id,
      project,
      trigger,
      ref,
      commit,
      // null: no signature was asked for.
      signer,
      // null: nothing was counted.
      requests: requests && {
        counted: sum(requests, "requests"),
        failed: sum(requests, "failed"),
        brokeOff: sum(requests, "brokeOff"),
        left: sum(requests, "left"),
      },
      // Of each service that was guarded; null: not known.
      guard: report.guard,
      acceptedAt: moment(deployment.createdAtMs),
      startedAt: moment(deployment.startedAtMs),
      liveAt: moment(deployment.liveAtMs),
      endedAt: moment(deployment.finishedAtMs),
      hotpush: readVersion(),
    },
  } as const;
}

type Reported = Pick<DeploymentReport, "images" | "guard">;

function sum(sites: readonly SiteRequests[], what: "requests" | "failed" | "brokeOff" | "left"): number {
  return sites.reduce((total, site) => total + site[what], 0);
}

function moment(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString();
}

/**
 * Records what the receipt of a deployment that has succeeded will state. Call it in the transaction that records its ending:
 * it is what was known then, by the version of Hotpush that did it, and nothing changes it later. The signature follows when
 * somebody asks for it, so that no ssh-keygen keeps a deployment from its end.
 */
export function recordStatement(store: Store, deployment: Deployment, report: Reported): void {
  const { id } = deployment;
  const signer = store.get("SELECT signer FROM deployments WHERE id = ?", id)?.signer as string | null;
  const statement = JSON.stringify(statementOf(deployment, signer, report));
  store.run("INSERT OR REPLACE INTO receipts (deployment_id, statement) VALUES (?, ?)", id, statement);
}

/** Records whose signature of its commit ALLOWED_SIGNERS has accepted. Call it in a transaction. */
export function noteSigner(store: Store, id: number, signer: string): void {
  store.run("UPDATE deployments SET signer = ? WHERE id = ? AND state = 'running'", signer, id);
}

/** Public keys by the file of the private one as it was when it was read: any viewer may ask, and reading it starts a program. */
const publicKeys = new Map<string, string>();

/** The public key of the server's receipts. Its private key is made when it is first needed. @throws as `makeSigningKey` */
export async function receiptKey(statePath: string): Promise<string> {
  const path = join(statePath, "receipt-key");
  const stamp = () => {
    const { ino, mtimeMs } = statOf(path) ?? {};
    return `${path} ${ino} ${mtimeMs}`;
  };
  const known = publicKeys.get(stamp());
  if (known !== undefined) return known;
  const key = await makeSigningKey(path);
  publicKeys.set(stamp(), key);
  return key;
}

/**
 * The receipt of a deployment. It is signed once, then kept.
 *
 * @param statePath that of the server
 * @returns null if it leaves none: it has not succeeded
 * @throws Error with what ssh-keygen said
 */
export async function findReceipt(store: Store, statePath: string, id: number): Promise<Receipt | null> {
  const row = store.get("SELECT statement, receipt FROM receipts WHERE deployment_id = ?", id);
  if (typeof row?.receipt === "string") return JSON.parse(row.receipt) as Receipt;
  if (row === undefined) return null;
  const statement = String(row.statement);
  const publicKey = await receiptKey(statePath);
  const sig = await signWithSsh(join(statePath, "receipt-key"), namespace, authenticated(statement));
  const receipt = receiptOf(statement, keyFingerprint(publicKey), sig);
  const sql = "UPDATE receipts SET receipt = ? WHERE deployment_id = ?";
  store.transaction(() => store.run(sql, JSON.stringify(receipt), id));
  return receipt;
}

function receiptOf(statement: string, keyid: string, sig: string): Receipt {
  return { payloadType, payload: Buffer.from(statement).toString("base64"), signatures: [{ keyid, sig }] };
}

/** What is signed: DSSE's pre-authentication encoding. */
function authenticated(statement: string): string {
  return `DSSEv1 ${payloadType.length} ${payloadType} ${Buffer.byteLength(statement)} ${statement}`;
}

/**
 * Verifies the text of a receipt. It must be what Hotpush writes, to the byte: JSON and base64 can say the same in several ways.
 *
 * @returns what it states, or null if this key has not signed it
 * @throws Error if there is no ssh-keygen
 */
export async function verifyReceipt(text: string, publicKey: string): Promise<Statement | null> {
  try {
    const { payload, signatures }: Receipt = JSON.parse(text);
    const statement = Buffer.from(payload, "base64").toString();
    const sig = String(signatures[0]?.sig);
    const exact = JSON.stringify(receiptOf(statement, keyFingerprint(publicKey), sig));
    const isCanonical = Buffer.from(sig, "base64").toString("base64") === sig;
    if (text.replace(/\n$/, "") !== exact || !isCanonical) return null;
    if (!(await isSignedWithSsh(sig, { publicKey, namespace, text: authenticated(statement) }))) return null;
    const stated = JSON.parse(statement) as Statement;
    return stated.predicateType === predicateType ? stated : null;
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof TypeError) return null;
    throw error;
  }
}

/** Whose the key is, as `ssh-keygen -Y verify -I` asks. */
const principal = "hotpush";

/** The line by which `ssh-keygen -Y verify` knows the key, in the format of its file of allowed signers. */
export function signersLine(publicKey: string): string {
  return `${principal} namespaces="${namespace}" ${publicKey}`;
}

/** The key in a file of that format, or in one that ssh-keygen wrote; null: there is none. */
export function readPublicKey(text: string): string | null {
  return /ssh-ed25519 [A-Za-z0-9+/]+=*/.exec(text)?.[0] ?? null;
}
