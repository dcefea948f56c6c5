import assert from "node:assert/strict";
import { test } from "node:test";
import { bodySignatureIn } from "../../../../src/front/webhook/verify-signature.ts";
import { isAuthentic } from "./fixtures.ts";

const hex = "a4771c39fbe90f317c7824e83ddef3caae9cb3d976c214ace1f2937e133263c9";
const claimPrefixed = bodySignatureIn("x-hub-signature");
const claimBare = bodySignatureIn("x-gogs-signature");
const claimBoth = bodySignatureIn("x-hub-signature", "x-gogs-signature");

test("Atlassian's own vector is a right signature", () => {
  const claim = claimPrefixed({ "x-hub-signature": `sha256=${hex}` });
  assert(isAuthentic(claim, "It's a Secret to Everybody", "Hello World!"));
});

test("hex in upper case is the same signature", () => {
  assert.deepEqual(
    claimBare({ "x-gogs-signature": hex.toUpperCase() }),
    claimBare({ "x-gogs-signature": hex }),
  );
});

test("no header is a missing signature", () => {
  assert.deepEqual(claimBoth({}), { kind: "missing" });
});

const malformedPrefixed = [
  ["empty", ""],
  ["a prefix alone", "sha256="],
  ["SHA-1", `sha1=${hex.slice(0, 40)}`],
  ["SHA-256 named SHA-1", `sha1=${hex}`],
  ["without its prefix", hex],
  ["a prefix in upper case", `SHA256=${hex}`],
  ["a prefix twice", `sha256=sha256=${hex}`],
  ["a digit short", `sha256=${hex.slice(1)}`],
  ["a digit long", `sha256=${hex}0`],
  ["not hex at its end", `sha256=${hex.slice(2)}zz`],
  ["followed by what is not hex", `sha256=${hex}zz`],
  ["padded with a space", `sha256= ${hex}`],
  ["ended by a newline", `sha256=${hex}\n`],
  ["64 letters of two bytes", `sha256=${"é".repeat(64)}`],
  ["two of the same name", `sha256=${hex}, sha256=${hex}`],
] as const;

for (const [what, value] of malformedPrefixed) {
  test(`a signature that is ${what} is malformed`, () => {
    assert.equal(claimPrefixed({ "x-hub-signature": value }).kind, "malformed");
  });
}

test("a bare signature takes no prefix", () => {
  assert.equal(claimBare({ "x-gogs-signature": `sha256=${hex}` }).kind, "malformed");
});

test("a malformed signature is not saved by a well-formed one beside it", () => {
  const headers = { "x-hub-signature": "sha256=", "x-gogs-signature": hex };
  assert.equal(claimBoth(headers).kind, "malformed");
});

test("every signature that is there is claimed", () => {
  const claim = claimBoth({ "x-hub-signature": `sha256=${hex}`, "x-gogs-signature": "0".repeat(64) });
  assert(claim.kind === "body");
  assert.deepEqual(
    claim.digests.map((digest) => digest.toString("hex")),
    [hex, "0".repeat(64)],
  );
});
