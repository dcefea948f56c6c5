import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { gitHosts, identifyHost, unknownHost } from "../../../../src/front/webhook/git-hosts.ts";
import type { SignatureClaim } from "../../../../src/front/webhook/verify-signature.ts";
import { headersOf, isAuthentic, loadDeliveries } from "./fixtures.ts";

const hex = "757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

const signatureHeaders = [
  "x-hub-signature",
  "x-hub-signature-256",
  "x-forgejo-signature",
  "x-gitea-signature",
  "x-gogs-signature",
  "x-pagure-signature-256",
  "x-gitness-signature",
  "x-harness-signature",
  "webhook-signature",
  "webhook-id",
  "webhook-timestamp",
  "x-gitlab-token",
  "x-gitee-token",
  "x-onedev-signature",
  "x-payload-signature",
];

const eventHeaders = gitHosts.flatMap(({ eventHeader }) => (eventHeader === null ? [] : [eventHeader]));

const headerValue = fc.oneof(
  fc.string({ unit: "binary", maxLength: 200 }),
  fc.constantFrom("", "sha256=", hex, `sha256=${hex}`, `sha1=${hex}`, `${hex}, ${hex}`, "é".repeat(64)),
  fc.constantFrom(
    "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    "v1,",
    "v1",
    "v1a,x",
    "1614265330",
    "id",
  ),
  fc.constant("a".repeat(10_000)),
);

const anyHeaders = fc.dictionary(
  fc.constantFrom(...signatureHeaders, ...eventHeaders, "__proto__"),
  headerValue,
);

function assertWellFormed(claim: SignatureClaim): void {
  if (claim.kind !== "body" && claim.kind !== "standard-webhooks") return;
  assert(claim.digests.length > 0);
  for (const digest of claim.digests) assert.equal(digest.length, 32);
}

test("no headers make a host unidentifiable or its claim throw, and what is claimed is 32 bytes long", () => {
  fc.assert(
    fc.property(anyHeaders, (headers) => {
      assertWellFormed(identifyHost(headers).claimSignature(headers));
      for (const host of [...gitHosts, unknownHost]) assertWellFormed(host.claimSignature(headers));
    }),
    { numRuns: 20_000 },
  );
});

const signed = gitHosts
  .flatMap((host) => loadDeliveries(host.name).map((delivery) => ({ host, delivery })))
  .filter(({ delivery }) => delivery.expect.isAuthentic);

for (const header of signatureHeaders) {
  const deliveries = signed.filter(({ delivery }) => isRead(headersOf(delivery)[header], header));
  if (deliveries.length === 0) continue;
  test(`no change to one character of ${header} leaves a right signature`, () => {
    const character = fc.string({ unit: "grapheme-ascii", minLength: 0, maxLength: 2 });
    fc.assert(
      fc.property(
        fc.constantFrom(...deliveries),
        fc.nat(),
        character,
        ({ host, delivery }, position, text) => {
          const value = String(headersOf(delivery)[header]);
          const index = position % value.length;
          const changed = value.slice(0, index) + text + value.slice(index + 1);
          fc.pre(!isSame(changed, value));
          const claim = host.claimSignature(headersOf(delivery, { [header]: changed }));
          assert(!isAuthentic(claim, delivery.secret, delivery.body));
        },
      ),
      { numRuns: 2_000 },
    );
  });
}

/** GitLab's token counts for nothing, nor does SHA-1; of several signatures one may be wrong. */
function isRead(value: unknown, header: string): boolean {
  if (typeof value !== "string" || header === "x-gitlab-token") return false;
  return !value.startsWith("sha1=") && !value.includes(" ");
}

/** Hex is the same in upper case, base64 is not. */
function isSame(changed: string, value: string): boolean {
  return changed === value || (/[0-9a-f]{64}$/.test(value) && changed.toLowerCase() === value.toLowerCase());
}
