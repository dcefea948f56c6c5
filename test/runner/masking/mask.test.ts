import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createMask, type MaskStream } from "../../../src/runner/masking/mask.ts";

const token = "ghp_5Kx/9+Qz&7=é'\"\\$w rT";
const hexSecret = "7d1f0c5e9a3b48d2860e4f7a1b9c3d5e7f20418693ab5cd7ef1829304a5b6c7d";

/** How programs write a secret down, by name. */
function spellings(secret: string): Readonly<Record<string, string>> {
  const bytes = Buffer.from(secret);
  const hex = bytes.toString("hex");
  const json = JSON.stringify(secret).slice(1, -1);
  const everyByte = Array.from(bytes, (byte) => `%${byte.toString(16).padStart(2, "0")}`).join("");
  return {
    plain: secret,
    "hex, lower": hex,
    "hex, upper": hex.toUpperCase(),
    "hex in groups": hex.replace(/..(?=.)/g, "$& "),
    "hex with colons": hex.replace(/..(?=.)/g, "$&:"),
    "hex in lines of 60": hex.replace(/.{60}/g, "$&\n"),
    "URL encoding of encodeURIComponent": encodeURIComponent(secret),
    "URL encoding in lower case": encodeURIComponent(secret).replace(/%../g, (code) => code.toLowerCase()),
    "URL encoding of a form": new URLSearchParams({ a: secret }).toString().slice(2),
    "URL encoding of every byte": everyByte,
    "URL encoding of every byte, upper": everyByte.toUpperCase(),
    JSON: json,
    "JSON in ASCII": json.replace(
      /[^ -~]/g,
      (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`,
    ),
    "JSON in JSON": JSON.stringify(json).slice(1, -1),
    "quoted for a shell": secret.replaceAll("'", "'\\''"),
  };
}

/** Texts of which programs make base64, and how many characters a line of it has. */
function texts(secret: string): readonly (readonly [before: string, after: string, lineLength: number])[] {
  return [
    ["", "", 0],
    ["user:", "", 0],
    ["token:", " and so on", 0],
    ["x-access-token:", "\n", 76],
    [secret.replace(/./g, "-"), "", 64],
    ["".padEnd(44, "-"), "-", 64],
  ];
}

const masked = (stream: MaskStream, pieces: readonly Buffer[]) =>
  Buffer.concat([...pieces.map((piece) => stream.push(piece)), stream.finish()]).toString();

for (const [title, secret] of [
  ["a secret of letters and digits", hexSecret],
  ["a token with characters of all kinds", token],
] as const) {
  test(`${title} is masked in every spelling, wherever a write ends`, () => {
    for (const [name, spelling] of Object.entries(spellings(secret))) {
      assert.equal(maskedAnyhow(secret, `before ${spelling} after\n`), "before *** after\n", name);
    }
  });

  test(`${title} is masked in base64 within longer texts and over several lines, wherever a write ends`, () => {
    for (const [before, after, lineLength] of texts(secret)) {
      for (const encoding of ["base64", "base64url"] as const) {
        const bytes = Buffer.from(`${before}${secret}${after}`);
        const line = new RegExp(`.{${lineLength || 1_000}}`, "g");
        const told = maskedAnyhow(secret, `${bytes.toString(encoding).replace(line, "$&\r\n")}\n`);
        // At each end one character tells of its neighbour too, and what stands alone before a line end is not known.
        const most = (Buffer.byteLength(before + after) * 8) / 6 + 2 + (lineLength === 0 ? 0 : 5);
        const rest = told.replace(/\*\*\*|[\r\n=]/g, "");
        assert.ok(told.includes("***") && rest.length <= most, `${before}…${after} gave ${told}`);
      }
    }
  });
}

/** What becomes of `text`, having made sure that it is the same wherever it is cut in two, and byte by byte. */
function maskedAnyhow(secret: string, text: string): string {
  const mask = createMask([secret]);
  const bytes = Buffer.from(text);
  const whole = masked(mask.stream(), [bytes]);
  for (let at = 0; at <= bytes.length; at += 1) {
    const told = masked(mask.stream(), [bytes.subarray(0, at), bytes.subarray(at)]);
    assert.equal(told, whole, `${text}, cut at ${at}`);
  }
  const single = Array.from(bytes, (byte) => Buffer.of(byte));
  assert.equal(masked(mask.stream(), single), whole, `${text}, byte by byte`);
  return whole;
}

test("whatever the secrets and wherever writes end, what is told is what searching the whole text gives", () => {
  const word = fc.string({ unit: fc.constantFrom("a", "b", "-"), minLength: 6, maxLength: 9 });
  const property = fc.property(
    fc.array(word, { minLength: 1, maxLength: 4 }),
    fc.array(fc.oneof(fc.string({ unit: fc.constantFrom("a", "b", "-", "\n"), maxLength: 12 }), fc.nat(7))),
    fc.array(fc.nat(60)),
    (words, parts, cuts) => {
      // One that stands within another is found where the other goes no further.
      const secrets = words.flatMap((one) => [one, one.slice(1, -1)]);
      const text = parts.map((part) => (typeof part === "number" ? (secrets[part] ?? "") : part)).join("");
      const bytes = Buffer.from(text);
      const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((one, other) => one - other)];
      const pieces = edges.map((from, index) => bytes.subarray(from, edges[index + 1]));
      assert.equal(masked(createMask(secrets).stream(), pieces), searched(text, secrets));
    },
  );
  fc.assert(property, { numRuns: 2_000 });
});

/** The plain way: all occurrences are marked, and each run of those that overlap becomes stars. */
function searched(text: string, secrets: readonly string[]): string {
  const ranges = secrets.flatMap((secret) =>
    Array.from(text, (_, from) => from)
      .filter((from) => text.startsWith(secret, from))
      .map((start) => ({ start, end: start + secret.length })),
  );
  let told = "";
  let toldTo = 0;
  for (const { start, end } of ranges.sort((one, other) => one.start - other.start)) {
    if (start >= toldTo) told += `${text.slice(toldTo, start)}***`;
    toldTo = Math.max(toldTo, end);
  }
  return told + text.slice(toldTo);
}

test("in any text with any number of secrets, cut anywhere, no encoding of them is told", () => {
  const secret = fc.string({ unit: "binary-ascii", minLength: 9, maxLength: 40 }).filter(isPlainEnough);
  const property = fc.property(
    fc.array(secret, { minLength: 1, maxLength: 3 }),
    fc.array(fc.oneof(fc.string(), fc.tuple(fc.nat(2), fc.nat(14)))),
    fc.array(fc.nat(400)),
    (secrets, parts, cuts) => {
      const spelled = secrets.map((one) => [
        ...Object.values(spellings(one)),
        Buffer.from(one).toString("base64"),
      ]);
      const text = parts
        .map((part) => (typeof part === "string" ? part : (spelled[part[0]]?.[part[1]] ?? "")))
        .join(" ");
      const bytes = Buffer.from(text);
      const edges = [0, ...cuts.filter((cut) => cut < bytes.length).sort((one, other) => one - other)];
      const pieces = edges.map((from, index) => bytes.subarray(from, edges[index + 1]));
      const told = masked(createMask(secrets).stream(), pieces);
      for (const spelling of spelled.flat()) assert.ok(!told.includes(spelling), `${spelling} in ${told}`);
    },
  );
  fc.assert(property, { numRuns: 500 });
});

/** Stars and blanks alone are what masking itself leaves. */
function isPlainEnough(text: string): boolean {
  return /[a-zA-Z]{3}/.test(text) && text.trim() === text && !text.includes("***");
}

test("a line that holds no beginning of a secret is told at once, and so is what follows a whole secret", () => {
  const stream = createMask([hexSecret]).stream();
  assert.equal(stream.push(Buffer.from("no line end yet")).toString(), "no line end yet");
  assert.equal(stream.push(Buffer.from("\nthe secret begins 7d1f")).toString(), "\nthe secret begins ");
  assert.equal(stream.push(Buffer.from("\n")).toString(), "7d1f\n");
  assert.equal(stream.push(Buffer.from(hexSecret)).toString(), "***");
  assert.equal(stream.push(Buffer.from("7d1f0c5e")).toString(), "");
  assert.equal(stream.finish().toString(), "7d1f0c5e");
});

test("never more is held back than the longest spelling, less one byte", () => {
  const secret = "a".repeat(50);
  const property = fc.property(fc.string({ unit: fc.constantFrom("a", "%", "6", "1", "YWFh") }), (text) => {
    const bytes = Buffer.from(text.repeat(20));
    const told = createMask([secret]).stream().push(bytes);
    assert.ok(bytes.length < 300 || told.length > 0);
    const stream = createMask([secret]).stream();
    for (const byte of bytes) stream.push(Buffer.of(byte));
    assert.ok(stream.finish().length < 50 * 3);
  });
  fc.assert(property, { numRuns: 200 });
});

test("what only looks like the beginning of an encoded secret is let go after some blank bytes", () => {
  const stream = createMask([hexSecret]).stream();
  const begun = Buffer.from(hexSecret).toString("hex").slice(0, 40);
  assert.equal(stream.push(Buffer.from(begun)).length, 0);
  assert.equal(stream.push(Buffer.from(" ".repeat(16))).length, 0);
  assert.equal(stream.push(Buffer.from(" ")).toString(), `${begun}${" ".repeat(17)}`);
});

test("a stream that goes on where another broke off masks the rest of a secret, the other having told its beginning to nobody", () => {
  const mask = createMask([hexSecret]);
  const encoded = Buffer.from(hexSecret).toString("hex");
  for (const spelling of [hexSecret, encoded]) {
    for (let at = 1; at <= spelling.length - 6; at += 1) {
      const before = mask.stream().push(Buffer.from(`x ${spelling.slice(0, at)}`));
      assert.equal(before.toString(), "x ");
      const resumed = mask.stream({ isResumed: true });
      assert.equal(masked(resumed, [Buffer.from(`${spelling.slice(at)} y`)]), "*** y");
    }
  }
  assert.equal(masked(mask.stream({ isResumed: true }), [Buffer.from("a new line\n")]), "a new line\n");
});

test("texts are masked too, and a mask without secrets changes nothing", () => {
  assert.equal(createMask([hexSecret]).text(`env ${hexSecret} é`), "env *** é");
  assert.equal(createMask([]).text("all of it"), "all of it");
});
