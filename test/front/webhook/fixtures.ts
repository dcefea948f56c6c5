import assert from "node:assert/strict";
import { readdirSync, readFileSync } from "node:fs";
import type { IncomingHttpHeaders } from "node:http";
import { makeSecret } from "../../../src/config/secret.ts";
import { isJsonObject, type JsonObject } from "../../../src/deployments/push.ts";
import { gitHosts, type Host, type Reading, unknownHost } from "../../../src/front/webhook/git-hosts.ts";
import {
  makeKeys,
  type SignatureClaim,
  startVerification,
} from "../../../src/front/webhook/verify-signature.ts";

/** One request as its host sends it: headers and body byte for byte, and the expected result. */
export interface Delivery {
  readonly host: string;
  /** What is particular about it, as a claim. */
  readonly name: string;
  readonly secret: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  readonly expect: {
    /** null if the body is not JSON, or not read. */
    readonly reading: Reading | null;
    /** What the service answers over HTTP: its status, and the problem's code, the reason, or else the status it names. */
    readonly answer: { readonly status: number; readonly says: string };
    readonly deploys: { readonly ref: string; readonly commit: string } | null;
  };
}

const folder = new URL("../../fixtures/deliveries/", import.meta.url);

/** Every delivery of `host`, which is the name of a folder. */
export function loadDeliveries(host: string): readonly Delivery[] {
  const files = readdirSync(new URL(`${host}/`, folder)).filter((file) => file.endsWith(".json"));
  return files.map((file) => loadDelivery(host, file.replace(/\.json$/, "")));
}

export function loadDelivery(host: string, file: string): Delivery {
  const delivery: Delivery = JSON.parse(readFileSync(new URL(`${host}/${file}.json`, folder), "utf8"));
  return delivery;
}

/** The names of all hosts that have deliveries. */
export function hostsWithDeliveries(): readonly string[] {
  return readdirSync(folder);
}

/** The git host of this name. */
export function hostNamed(name: string): Host {
  return [...gitHosts, unknownHost].find((host) => host.name === name) ?? assert.fail(name);
}

/** The delivery's headers as Node hands them over, in lower case, some of them replaced or, with undefined, removed. */
export function headersOf({ headers }: Delivery, changes: IncomingHttpHeaders = {}): IncomingHttpHeaders {
  const received = Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]);
  return { ...Object.fromEntries(received), ...changes };
}

export function payloadOf(delivery: Delivery): JsonObject {
  const payload: unknown = JSON.parse(delivery.body);
  assert(isJsonObject(payload));
  return payload;
}

export function eventOf(host: Host, delivery: Delivery): string {
  const value = host.eventHeader === null ? undefined : headersOf(delivery)[host.eventHeader];
  return typeof value === "string" ? value : "";
}

/** True if the signatures are those of `body`. */
export function isAuthentic(claim: SignatureClaim, secret: string, body: string): boolean {
  if (!("digests" in claim)) return false;
  const verification = startVerification(claim, makeKeys({ current: makeSecret(secret), previous: null }));
  verification.update(body);
  return verification.verdict() !== null;
}
