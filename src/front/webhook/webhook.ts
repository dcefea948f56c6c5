import { isUtf8 } from "node:buffer";
import { randomBytes } from "node:crypto";
import type { IncomingMessage, Server } from "node:http";
import type { BlockList } from "node:net";
import type { ProjectSettings } from "#config/project";
import { makeSecret, type SecretSlot } from "#config/secret";
import { onlyProjectName } from "#config/server";
import { formatSize } from "#config/values";
import {
  deliveryIdPattern,
  isCommitId,
  isJsonObject,
  isPlainRepository,
  type JsonObject,
  type MainRef,
  mainRefs,
  type Push,
  readDryRun,
  refsOf,
  type Would,
  withoutDryRun,
} from "#deployments/push";
import type { Log } from "#log";
import { createLogThrottle } from "#platform/async";
import {
  type Answer,
  checkHead,
  clientAddress,
  createPublicServer,
  declaredBytes,
  discard,
  jsonAnswer,
  problemAnswer,
  type Refusal,
  sendAnswer,
} from "#platform/http-server";
import { printable } from "#platform/terminal";
import type { HttpProblemCode } from "#problems";
import { claimSignature, identifyHost, type Reading, type RefChange, readPayload } from "./git-hosts.ts";
import type { Spool } from "./spool.ts";
import {
  deliveryDigest,
  isFresh,
  makeKeys,
  type SignatureClaim,
  type SlotKeys,
  startVerification,
  type VerifiableSignature,
} from "./verify-signature.ts";

/** A project whose pushes are received. Another object when its settings change. */
export interface WebhookProject {
  readonly name: string;
  readonly settings: Pick<ProjectSettings, "secrets" | "repository" | "branch">;
}

export interface ReceiverOptions {
  readonly findProject: (name: string) => WebhookProject | null;
  /** Whether there is one project, at `/webhook`, and not one at each `/webhook/<name>`. */
  readonly isOnly: boolean;
  readonly spool: Pick<Spool, "add" | "dryRun" | "noteSecretUse">;
  readonly bodyLimitBytes: number;
  readonly trustedProxies: BlockList;
  /** What is wrong with the service, or null. /health answers it to strangers. */
  readonly findFault: () => string | null;
  /** Aborted when the service stops: then each answer closes its connection. */
  readonly stopping: AbortSignal;
  readonly log: Log;
}

interface Receiver extends ReceiverOptions {
  /** Whether one more refusal of this kind is logged by itself: strangers can make as many as they like. */
  readonly mayLogRefusal: (code: HttpProblemCode) => boolean;
  /** The same of deliveries that change nothing. */
  readonly mayLogIgnored: (reason: IgnoreReason | "pong" | "dry_run" | "duplicate") => boolean;
  readonly arriving: ArrivingBodies;
  /** Made once for each project, so that no request pays for it. */
  readonly keys: WeakMap<WebhookProject, readonly SlotKeys[]>;
}

const refusalsPerMinute = 10;
/** No git host sends more. */
const ignoredPerSecond = 100;

/** Makes the HTTP server: webhooks, /health and nothing else. It does not listen yet. */
export function createReceiver(options: ReceiverOptions): Server {
  const { trustedProxies, findFault, stopping, log } = options;
  const receiver: Receiver = {
    ...options,
    mayLogRefusal: createLogThrottle(refusalsPerMinute, 60_000, (code, count) => {
      const text = `${count} more deliveries were refused (${code})`;
      log.warn({ event: "delivery.refused_more", code, count }, text);
    }),
    mayLogIgnored: createLogThrottle(ignoredPerSecond, 1_000, (reason, count) => {
      const text = `${count} more deliveries changed nothing (${reason})`;
      log.info({ event: "delivery.ignored_more", reason, count }, text);
    }),
    arriving: { heldBytes: 0, drops: new Set() },
    keys: new WeakMap(),
  };
  return createPublicServer("webhook", {}, log, async (request, response) => {
    // To the letter: no decoding and no normalising, so no two texts for one path.
    const [path = ""] = (request.url ?? "").split("?", 1);
    const project = projectAt(path, options);
    // Before anything is awaited: what follows a refused head on its connection must not be read as a request.
    const refusal = refuseHead(request, path, project, options.isOnly);
    const answer = refusal
      ? problemAnswer(refusal)
      : project
        ? await answerDelivery(receiver, project, request, clientAddress(request, trustedProxies))
        : healthAnswer(findFault());
    if (answer) sendAnswer(response, answer, stopping.aborted);
  });
}

const prefix = "/webhook/";
/** For a name that no project has: the same checks and the same answer as for a wrong signature. */
const unknownProject: WebhookProject = {
  name: "",
  settings: {
    secrets: { current: makeSecret(randomBytes(32).toString("hex")), previous: null },
    repository: null,
    branch: null,
  },
};

/** @returns null for a path that is no webhook's */
function projectAt(path: string, { isOnly, findProject }: ReceiverOptions): WebhookProject | null {
  if (isOnly) return path === "/webhook" ? findProject(onlyProjectName) : null;
  return path.startsWith(prefix) ? (findProject(path.slice(prefix.length)) ?? unknownProject) : null;
}

/** What is wrong with a request whatever its body, or null. A head that is not well formed closes the connection. */
function refuseHead(
  request: IncomingMessage,
  path: string,
  project: WebhookProject | null,
  isOnly: boolean,
): Refusal | null {
  const fault = checkHead(request);
  const allowed = project ? ["POST"] : path === "/health" ? ["GET", "HEAD"] : [];
  if (allowed.includes(request.method ?? "")) return fault;
  const allow = allowed.join(", ");
  const paths = `POST ${isOnly ? "/webhook" : "/webhook/<project>"} and GET /health`;
  const misdirected: Refusal = allow
    ? { code: "method_not_allowed", detail: `This path takes ${allow} only.`, headers: ["Allow", allow] }
    : { code: "not_found", detail: `This service has two paths: ${paths}.` };
  return fault ? { ...misdirected, closing: "refused" } : misdirected;
}

function healthAnswer(fault: string | null): Answer {
  return fault === null
    ? jsonAnswer(200, { status: "ok" })
    : problemAnswer({ code: "unhealthy", detail: fault });
}

/** Logs each result, and never a body, a header or a secret. @returns null if the client is gone */
async function answerDelivery(
  receiver: Receiver,
  project: WebhookProject,
  request: IncomingMessage,
  from: string | null,
): Promise<Answer | null> {
  const place = receiver.isOnly ? { from } : { from, project: project.name };
  const result = await checkDelivery(receiver, project, request, place);
  if (result === null || !("code" in result)) return result;
  const { code, logReason: reason } = result;
  // The address comes before the reason, at a fixed place: programs such as fail2ban look for it there.
  if (receiver.mayLogRefusal(code))
    receiver.log.warn(
      { event: "delivery.refused", code, ...place, reason },
      `A delivery was refused: ${code}`,
    );
  return problemAnswer(result);
}

/** The checks of a delivery, cheapest and least revealing first. Each may rely on those before it. */
async function checkDelivery(
  receiver: Receiver,
  project: WebhookProject,
  request: IncomingMessage,
  place: Place,
): Promise<Answer | Refusal | null> {
  const { bodyLimitBytes, arriving, keys, spool, log } = receiver;
  const { headers } = request;
  if (declaredBytes(request) > bodyLimitBytes) return tooLarge(bodyLimitBytes);
  if (!/^application\/json\s*(?:;|$)/i.test(headers["content-type"] ?? "")) return notJsonType;
  if ((headers["content-encoding"] ?? "identity") !== "identity") return compressed;

  const host = identifyHost(headers);
  const signature = claimSignature(host, headers);
  if (!("digests" in signature)) return unverifiable(signature);
  if (!keys.has(project)) keys.set(project, makeKeys(project.settings.secrets));
  const verification = startVerification(signature, keys.get(project) ?? []);
  const chunks = await readBody(request, bodyLimitBytes, arriving, verification.update);
  if (!Array.isArray(chunks)) return chunks;
  const slot = verification.verdict();
  if (slot === null || !isFresh(signature, Date.now())) {
    for (const chunk of chunks) discard(chunk);
    return signatureInvalid(slot === null ? "mismatch" : "timestamp too old or too new");
  }

  const event = String(headers[host.eventHeader ?? ""] ?? "");
  const id = String(headers[host.deliveryHeader ?? ""] ?? "");
  const sender = { host: host.name, delivery: deliveryIdPattern.test(id) ? id : null, ...place };
  if (project !== unknownProject) spool.noteSecretUse(project.name, slot, host.name, sender.delivery);
  const body = joinChunks(chunks);
  const payload = parsePayload(body);
  if ("code" in payload) return payload;
  const { object, isDryRun } = payload;
  const reading = readPayload(host, event, object);
  if (reading.kind === "unusable") {
    const detail = `The body is signed correctly but ${reading.field} is not ${reading.expected}.`;
    return unreadable("invalid_payload", detail, reading.field);
  }
  if (reading.kind === "ping") {
    if (receiver.mayLogIgnored("pong"))
      log.info({ event: "delivery.pong", ...sender }, `A ping of ${sender.host} was answered`);
    return jsonAnswer(200, { status: "pong" });
  }
  const change = selectChange(reading, project.settings);
  if (typeof change === "string") {
    if (isDryRun) {
      const ignore = { reason: change, detail: ignoreDetails[change] };
      return dryRunAnswer(receiver, { ignore }, slot, sender);
    }
    const level = change === "branch_deleted" ? "warn" : "info";
    if (receiver.mayLogIgnored(change))
      log[level]({ event: "delivery.ignored", ...sender, reason: change }, "A delivery was ignored");
    return ignoredAnswers[change];
  }
  if (!isCommitId(change.after)) {
    const detail = "The commit pushed is not 40 or 64 lower-case hexadecimal digits.";
    return unreadable("invalid_payload", detail, "/after");
  }
  const push: Push = {
    ref: change.ref,
    before: change.before,
    commit: change.after,
    host: host.name,
    deliveryId: sender.delivery,
    // Nothing depends on these names, so what is not plain is not kept.
    repository: isPlainRepository(change.repository) ? change.repository : null,
    pusher: printable(change.pusher?.slice(0, 10 * longestPusher) ?? "", longestPusher).trim() || null,
    digest: deliveryDigest(signature, isDryRun ? withoutDryRun(body) : body),
  };
  if (!isDryRun) return await recordPush(receiver, project, push, slot, sender);
  const would = await spool.dryRun(project.name, push);
  return would === null ? problemAnswer(notAsked) : dryRunAnswer(receiver, would, slot, sender);
}

const longestPusher = 100;

function tooLarge(limitBytes: number): Refusal {
  const detail = `The body is larger than ${formatSize(limitBytes)}, the value of WEBHOOK_BODY_LIMIT. Raise it, or push less at once.`;
  return { code: "payload_too_large", detail, closing: "refused" };
}

const notJsonType: Refusal = {
  code: "unsupported_media_type",
  detail:
    "This service reads JSON. In the webhook's settings at the git host, set the content type to application/json.",
};
const compressed: Refusal = {
  code: "unsupported_encoding",
  detail:
    "The body is compressed, which no git host does by itself: switch off request compression in the proxy before this service.",
};

/** Why a delivery whose signature cannot be verified is refused. */
function unverifiable(claim: Exclude<SignatureClaim, VerifiableSignature>): Refusal {
  if (claim.kind === "malformed") return signatureInvalid(claim.reason);
  if (claim.kind === "unsupported") return { code: "signature_unsupported", detail: claim.help };
  const detail =
    "The request has no HMAC-SHA256 signature. Set the same secret in the webhook's settings at the git host as in WEBHOOK_SECRET.";
  return { code: "signature_missing", detail };
}

/** The sender learns nothing more than that; the log has the reason. */
function signatureInvalid(logReason: string): Refusal {
  const detail =
    "The signature is not one made with this service's secret. Compare the secret in the webhook's settings with WEBHOOK_SECRET.";
  return { code: "signature_invalid", detail, logReason };
}

/** What all bodies that are arriving may hold together. Nobody knows yet whether they are signed. */
const mostHeldBytes = 64 * 1024 ** 2;
/** What a chunk takes beside its bytes: a body can be sent in pieces of one byte. */
const chunkBytes = 512;

/** The bodies that are arriving, the oldest first. */
interface ArrivingBodies {
  heldBytes: number;
  /** Each refuses its body. */
  readonly drops: Set<() => void>;
}

/**
 * Reads the body byte for byte as it was sent, and no more than `limitBytes` of it. If all bodies together hold too much, the
 * one that has been arriving for longest is dropped: a real push arrives within milliseconds.
 *
 * @param onChunk gets each chunk as it arrives, so that hashing a large body never blocks for long
 * @returns the body in the pieces in which it came, since only a signed one is worth the copy; why it is refused; or null
 *   if the sender went away or was cut off before it was whole
 */
function readBody(
  request: IncomingMessage,
  limitBytes: number,
  arriving: ArrivingBodies,
  onChunk: (chunk: Buffer) => void,
): Promise<Buffer[] | Refusal | null> {
  const { promise, resolve } = Promise.withResolvers<Buffer[] | Refusal | null>();
  const chunks: Buffer[] = [];
  let length = 0;
  let heldBytes = 0;
  let isSettled = false;
  const drop = () => settle(tooSlow);

  function settle(result: Buffer[] | Refusal | null): void {
    if (isSettled) return;
    isSettled = true;
    if (arriving.drops.delete(drop)) arriving.heldBytes -= heldBytes;
    if (result !== chunks) for (const chunk of chunks) discard(chunk);
    resolve(result);
  }

  request.on("data", (chunk: Buffer) => {
    if (isSettled) return discard(chunk);
    if (length + chunk.length > limitBytes) return settle(tooLarge(limitBytes));
    onChunk(chunk);
    chunks.push(chunk);
    length += chunk.length;
    heldBytes += chunk.length + chunkBytes;
    arriving.heldBytes += chunk.length + chunkBytes;
    arriving.drops.add(drop);
    for (const dropOldest of arriving.drops) {
      if (arriving.heldBytes <= mostHeldBytes) break;
      dropOldest();
    }
  });
  request.on("end", () => settle(chunks));
  request.on("error", () => settle(null));
  request.on("close", () => settle(null));
  return promise;
}

const tooSlow: Refusal = {
  code: "overloaded",
  detail: "Too many unfinished bodies were arriving at once, and this one arrived too slowly. Send it again.",
  closing: "broken",
};

/** @returns the body in one piece; its chunks cannot be used after that */
function joinChunks(chunks: readonly Buffer[]): Buffer {
  const [only] = chunks;
  if (only && chunks.length === 1) return only;
  const body = Buffer.concat(chunks);
  for (const chunk of chunks) discard(chunk);
  return body;
}

/** Reads a signed body as JSON. @returns why it is refused, if it is none */
function parsePayload(body: Buffer): { object: JsonObject; isDryRun: boolean } | Refusal {
  if (!isUtf8(body)) return unreadable("invalid_encoding", "The body is signed correctly but is not UTF-8.");
  let value: unknown;
  try {
    value = JSON.parse(body.toString("utf8"));
  } catch {
    return unreadable("invalid_json", "The body is signed correctly but is not JSON.");
  }
  if (!isJsonObject(value)) return unreadable("invalid_payload", "The body is JSON but not an object.", "");
  const kind = readDryRun(value);
  if (kind !== "malformed") return { object: value, isDryRun: kind === "dry-run" };
  const detail =
    'The body is signed correctly but its member "hotpush" is not {"dryRun": true}, so it is taken neither for a dry run nor for a push.';
  return unreadable("invalid_payload", detail, "/hotpush");
}

/** Why a body with the right signature is refused. Its sender has the secret, so the log repeats what the answer says. */
function unreadable(code: HttpProblemCode, detail: string, pointer?: string): Refusal {
  return { code, detail, logReason: detail, ...(pointer === undefined ? {} : { pointer }) };
}

/** Why a delivery changes nothing, as the git host shows it. */
const ignoreDetails = {
  other_event: "Only push events are deployed.",
  other_repository: "Only pushes of the repository that REPOSITORY names are deployed.",
  other_branch: "Only pushes to main or master are deployed.",
  branch_not_selected: "Only pushes to the branch that BRANCH names are deployed.",
  tag: "Only pushes to main or master are deployed, no tags.",
  branch_deleted: "The branch was deleted: there is nothing to deploy. The running version stays.",
} as const;
type IgnoreReason = keyof typeof ignoreDetails;
/** Made once: most deliveries are ignored. */
const ignoredAnswers = Object.fromEntries(
  Object.entries(ignoreDetails).map(([reason, detail]) => [
    reason,
    jsonAnswer(200, { status: "ignored", reason, detail }),
  ]),
) as Readonly<Record<IgnoreReason, Answer>>;

interface SelectedChange extends RefChange {
  readonly ref: MainRef;
  readonly repository: string | null;
  readonly pusher: string | null;
}

/** The move of a branch that is deployed, or why there is none. If both branches have moved, main comes first. */
function selectChange(
  reading: Extract<Reading, { readonly kind: "push" | "other-event" }>,
  settings: WebhookProject["settings"],
): SelectedChange | IgnoreReason {
  if (reading.kind === "other-event") return "other_event";
  const { changes, repository, pusher } = reading;
  const wanted = settings.repository?.toLowerCase();
  if (wanted !== undefined && repository?.toLowerCase() !== wanted) return "other_repository";
  let isDeleted = false;
  for (const ref of refsOf(settings.branch)) {
    const moves = changes.filter((change) => change.ref === ref);
    const move = moves.find(({ after }) => after !== null);
    if (move) return { ...move, ref, repository, pusher };
    isDeleted ||= moves.length > 0;
  }
  if (isDeleted) return "branch_deleted";
  if (changes.some(({ ref }) => (mainRefs as readonly string[]).includes(ref))) return "branch_not_selected";
  const isTagOnly = changes.length > 0 && changes.every(({ ref }) => ref.startsWith("refs/tags/"));
  return isTagOnly ? "tag" : "other_branch";
}

function dryRunAnswer(
  { log, mayLogIgnored }: Receiver,
  would: Would,
  secret: SecretSlot,
  sender: Sender,
): Answer {
  const fields = { event: "delivery.dry_run", ...sender, would: Object.keys(would)[0] };
  if (mayLogIgnored("dry_run")) log.info(fields, "A dry run was answered; nothing was recorded");
  return jsonAnswer(200, { status: "dry-run", would, secret });
}

/** Why a dry run is not answered. */
const notAsked: Refusal = {
  code: "storage_unavailable",
  detail:
    "The process that deploys does not answer, so nobody knows what it would do. A push would be stored for it.",
};

/** Puts the push on disk, and then answers. */
async function recordPush(
  { spool, log, mayLogIgnored }: Receiver,
  project: WebhookProject,
  push: Push,
  slot: SecretSlot,
  sender: Sender,
): Promise<Answer> {
  try {
    const recorded = await spool.add(project.name, push);
    const { digest: _, before: __, deliveryId, ...shown } = push;
    const found =
      recorded.kind === "stored"
        ? { stored: recorded.delivery }
        : { deployment: recorded.deployment.id, state: recorded.deployment.state };
    const text = recorded.kind === "duplicate" ? "recorded before" : recorded.kind;
    if (recorded.kind !== "duplicate" || mayLogIgnored("duplicate")) {
      log.info(
        { event: `delivery.${recorded.kind}`, ...found, ...shown, ...sender },
        `A push to ${push.ref} was ${text}`,
      );
      const advice = "A delivery was signed with WEBHOOK_SECRET_PREVIOUS: set the new secret at the git host";
      if (slot === "previous") log.warn({ event: "secret.previous_used", ...sender }, advice);
    }
    if (recorded.kind !== "stored") {
      const { kind, deployment, detail } = recorded;
      return jsonAnswer(kind === "accepted" ? 202 : 200, { status: kind, deployment, detail });
    }
    // The process that deploys was not there, or busy: what it makes of the push will be in its record.
    const delivery = { id: recorded.delivery, ref: push.ref, commit: push.commit };
    const detail = `The push is stored as delivery ${delivery.id}. It is deployed as soon as the process that deploys takes it.`;
    return jsonAnswer(202, { status: "accepted", delivery, detail });
  } catch (error) {
    const { ref, commit } = push;
    log.error(
      { event: "delivery.not_recorded", ref, commit, ...sender, err: error },
      "A push was not stored",
    );
    const detail =
      "The push could not be written to disk, so it is not promised. Its server's log says why; redeliver it once that is fixed.";
    return problemAnswer({ code: "storage_unavailable", detail });
  }
}

/** Where a request comes from, and the project that it is for, if there are several. */
interface Place {
  readonly from: string | null;
  readonly project?: string;
}

/** Where a delivery comes from. Nothing of it is signed. */
interface Sender extends Place {
  /** The name of the git host. */
  readonly host: string;
  /** The host's id of the delivery; null if there is none, or none that is harmless to print. */
  readonly delivery: string | null;
}
