import assert from "node:assert/strict";
import { test } from "node:test";
import { createRedactor } from "../../src/redaction/redactor.ts";
import { encodings, hexSecret, redacted } from "./redacted.ts";

const token = "ghp_5Kx/9+Qz&7=é'\"\\$w rT";

for (const [title, secret] of [
  ["a secret of letters and digits", hexSecret],
  ["a token with characters of all kinds", token],
] as const) {
  test(`${title} is redacted in every encoding, wherever a write ends`, () => {
    for (const [name, encoding] of Object.entries(encodings(secret))) {
      assert.equal(redactedAnyhow(secret, `before ${encoding} after\n`), "before *** after\n", name);
    }
  });

  test(`${title} is redacted in base64 of a longer text and over lines, wherever a write ends`, () => {
    for (const [before, after, lineLength] of [
      ["user:", "", 1_000],
      ["token:", " and so on", 1_000],
      ["x-access-token:", "\n", 76],
      ["", "-", 64],
    ] as const) {
      for (const encoding of ["base64", "base64url"] as const) {
        const line = new RegExp(`.{${lineLength}}(?=.)`, "g");
        const text = Buffer.from(`${before}${secret}${after}`).toString(encoding).replace(line, "$&\r\n");
        const output = redactedAnyhow(secret, `${text}\n`);
        // At each end one character also depends on its neighbour, and few characters before a line end are not matched.
        const most = (Buffer.byteLength(`${before}${after}`) * 8) / 6 + 2 + (lineLength === 1_000 ? 0 : 3);
        const rest = output.replace(/\*\*\*|[\r\n=]/g, "");
        assert.ok(output.includes("***") && rest.length <= most, `${before}…${after} gave ${output}`);
      }
    }
  });
}

test("texts are redacted too, and a redactor without secrets changes nothing", () => {
  assert.equal(createRedactor([hexSecret]).text(`env ${hexSecret} é`), "env *** é");
  assert.equal(createRedactor([]).text("all of it"), "all of it");
});

test("no secret and no output of a script holds up the process", () => {
  const shared = Array.from({ length: 4_000 }, (_, index) => `aaaaaa${String(index).padStart(5, "0")}`);
  for (const [secrets, text] of [
    [[`${"a".repeat(60_000)}b`], "a".repeat(64 * 1024)],
    [shared, "aaaaaa0".repeat(9_000)],
    [Array.from({ length: 50 }, (_, index) => `${index}${"x".repeat(64 * 1024)}`), "x".repeat(64 * 1024)],
  ] as const) {
    const before = process.cpuUsage();
    const stream = createRedactor(secrets).stream();
    stream.push(Buffer.from(text));
    const { user } = process.cpuUsage(before);
    assert.ok(user < 1_500_000, `${user / 1_000} ms`);
  }
});

/** `text` after redaction. Checks that the result is the same for any split in two, and byte by byte. */
function redactedAnyhow(secret: string, text: string): string {
  const redactor = createRedactor([secret]);
  const bytes = Buffer.from(text);
  const whole = redacted(redactor.stream(), [bytes]);
  for (let at = 0; at <= bytes.length; at += 1) {
    const output = redacted(redactor.stream(), [bytes.subarray(0, at), bytes.subarray(at)]);
    assert.equal(output, whole, `${text}, cut at ${at}`);
  }
  const single = Array.from(bytes, (byte) => Buffer.of(byte));
  assert.equal(redacted(redactor.stream(), single), whole, `${text}, byte by byte`);
  return whole;
}
