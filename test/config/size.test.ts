import assert from "node:assert/strict";
import { test } from "node:test";
import { formatSize, parseSizeBytes } from "../../src/config/values.ts";

test("a size is a number with its unit", () => {
  const taken = { "0B": 0, "1024 B": 1_024, "512 KiB": 2 ** 19, "25MiB": 26_214_400, "2 GiB": 2 ** 31 };
  for (const [text, bytes] of Object.entries(taken)) assert.equal(parseSizeBytes(text), bytes, text);
});

test("anything else is refused, never read as something else", () => {
  const refused = [
    ..."|0|26214400|-1B|+1B|1.5MiB|1,5MiB|1e3B|0x10B|1_000B|25  MiB| 25MiB|25MiB |25mib|25MB|25M".split("|"),
    ..."1TiB|B|MiB|25bytes|9999999999B|Infinity|NaN|25MiB\n|25\tMiB|25\u00a0MiB|２5MiB|1KiB1B|null".split(
      "|",
    ),
  ];
  for (const text of refused) assert.equal(parseSizeBytes(text), null, JSON.stringify(text));
});

test("a size is written for a person", () => {
  const written = { 0: "0 B", 1023: "1023 B", 1024: "1 KiB", 1536: "1.5 KiB", 27000000: "25.7 MiB" };
  for (const [bytes, text] of Object.entries(written)) assert.equal(formatSize(Number(bytes)), text);
});
