import { isCommitId, isPlainRepository, mainRefs, type Push } from "../receiver/push.ts";
import {
  mostOffered,
  type Offer,
  type OfferedDryRun,
  type OfferedSecretUse,
  type TakeResponse,
} from "./offer.ts";

/** What a response offers, with each part that is not as it must be left out. */
export interface ReadOffers extends TakeResponse {
  /** The places of pushes that are no pushes: they leave the inbox unrecorded. */
  readonly refusedSeqs: readonly number[];
}

/**
 * Reads a response of the inbox as what it may be: bytes that an attacker has chosen. A push is rebuilt from fields that
 * have been checked, one by one, and nothing else of it is used.
 *
 * @param afterSeq what is recorded already: places only go up
 * @returns null if it is no response at all
 */
export function readOffers(body: Buffer, afterSeq: number): ReadOffers | null {
  const response = parsed(body);
  if (!isObject(response) || !isText(response.inbox, /^[0-9a-f-]{36}$/)) return null;
  const ascending = ascendingPlaces(listOf(response.pushes).filter(isObject), afterSeq);
  const offers = ascending.map((one) => ({ ...readOffer(one), seq: Number(one.seq) }));
  return {
    inbox: response.inbox,
    pushes: offers.filter((offer): offer is Offer => offer.push !== undefined),
    refusedSeqs: offers.filter(({ push }) => push === undefined).map(({ seq }) => seq),
    dryRuns: listOf(response.dryRuns).flatMap(readDryRunOffer),
    secretUses: listOf(response.secretUses).flatMap(readSecretUse),
  };
}

function ascendingPlaces(offers: readonly JsonObject[], afterSeq: number): readonly JsonObject[] {
  let last = afterSeq;
  return offers.filter(({ seq }) => {
    const isNext = isPlace(seq) && seq > last;
    if (isNext) last = seq;
    return isNext;
  });
}

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString("utf8")) as unknown;
  } catch {
    return null;
  }
}

type JsonObject = Readonly<Record<string, unknown>>;

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function listOf(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value.slice(0, mostOffered) : [];
}

function isText(value: unknown, pattern: RegExp): value is string {
  return typeof value === "string" && pattern.test(value);
}

function isPlace(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) > 0;
}

const projectName = /^[a-z0-9][a-z0-9-]{0,38}$/;
const hostName = /^[a-z][a-z-]{0,39}$/;
const deliveryName = /^[A-Za-z0-9-]{1,64}$/;

function readOffer({ project, push }: JsonObject): Partial<Pick<Offer, "project" | "push">> {
  const read = isObject(push) ? readPush(push) : null;
  return read !== null && isText(project, projectName) ? { project, push: read } : {};
}

function readDryRunOffer(value: unknown): OfferedDryRun[] {
  if (!isObject(value) || !isPlace(value.id)) return [];
  const { project, push } = readOffer(value);
  return project !== undefined && push !== undefined ? [{ id: value.id, project, push }] : [];
}

function readSecretUse(value: unknown): OfferedSecretUse[] {
  if (!isObject(value)) return [];
  const { project, slot, host, deliveryId } = value;
  if (!isText(project, projectName) || !isText(host, hostName)) return [];
  if (slot !== "current" && slot !== "previous") return [];
  return [{ project, slot, host, deliveryId: isText(deliveryId, deliveryName) ? deliveryId : null }];
}

/** @returns null if a field that decides anything is not as it must be */
function readPush({
  host,
  ref,
  before,
  commit,
  repository,
  pusher,
  digest,
  deliveryId,
}: JsonObject): Push | null {
  const branch = mainRefs.find((one) => one === ref);
  if (!isText(host, hostName) || branch === undefined) return null;
  if (!isCommitId(commit) || !(before === null || isCommitId(before))) return null;
  if (!isText(digest, /^[0-9a-f]{64}$/)) return null;
  return {
    ...{ host, ref: branch, before, commit, digest },
    repository: isPlainRepository(repository) ? repository : null,
    // Only for people: printable, and bounded.
    pusher: isText(pusher, /^[^\p{C}\u2028\u2029]{1,100}$/u) ? pusher : null,
    deliveryId: isText(deliveryId, deliveryName) ? deliveryId : null,
  };
}
