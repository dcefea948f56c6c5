import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { formatSize, parseSizeBytes } from "../../src/config/size.ts";

const taken: readonly [string, number][] = [
  ["0B", 0],
  ["1B", 1],
  ["1024 B", 1_024],
  ["26214400B", 26_214_400],
  ["1KiB", 1_024],
  ["512 KiB", 524_288],
  ["25MiB", 26_214_400],
  ["25 MiB", 26_214_400],
  ["999999999B", 999_999_999],
  ["2 GiB", 2_147_483_648],
];

for (const [text, bytes] of taken) {
  test(`${text} is ${bytes} bytes`, () => assert.equal(parseSizeBytes(text), bytes));
}

const refused = [
  ..."|0|25|26214400|-1B|+1B|1.5MiB|.5MiB|1,5MiB|1e3B|0x10B|1_000B|25  MiB| 25MiB|25MiB |25mib|25MIB|25Mib".split(
    "|",
  ),
  ..."25MB|25M|25m|25K|25KB|25kb|25k|1G|1GB|1TiB|B|KiB|MiB|25bytes|25 b|25iB|9999999999B|Infinity|NaN".split(
    "|",
  ),
  ..."25MiB\n|25\tMiB|25\u00a0MiB|２5MiB|٣MiB|25MiB;|1KiB1B|25 MiB 1 KiB|null".split("|"),
];

for (const text of refused) {
  test(`${JSON.stringify(text)} is not a size`, () => assert.equal(parseSizeBytes(text), null));
}

test("a bare number is never given a unit", () => {
  fc.assert(fc.property(fc.nat(), (number) => parseSizeBytes(String(number)) === null));
});

const written: readonly [number, string][] = [
  [0, "0 B"],
  [1_023, "1023 B"],
  [1_024, "1 KiB"],
  [1_536, "1.5 KiB"],
  [26_214_400, "25 MiB"],
  [27_000_000, "25.7 MiB"],
];

for (const [bytes, text] of written) {
  test(`${bytes} bytes are written as ${text}`, () => assert.equal(formatSize(bytes), text));
}

test("a formatted whole number of units is read as the same number", () => {
  const units = fc.constantFrom(1_024, 1_024 ** 2);
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 50 }), units, (count, unit) => {
      return parseSizeBytes(formatSize(count * unit)) === count * unit;
    }),
  );
});
