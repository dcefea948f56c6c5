import assert from "node:assert/strict";
import { test } from "node:test";
import { createLineCutter, longestLine } from "../../src/runner/lines.ts";

const streams: Readonly<Record<string, string>> = {
  "lines of text": "one\ntwo\nthree\n",
  "empty lines and none at the end": "\n\none\n\nlast",
  "line ends of Windows": "one\r\n\r\ntwo\rmiddle\r\n",
  "characters of several bytes": "é\n日本語 👋\n".repeat(40),
  "a line that is too long": `${"日".repeat(longestLine)}\nshort\n`,
};

for (const [name, text] of Object.entries(streams)) {
  test(`${name} are the same lines, however the stream is cut`, () => {
    const whole = cut(text, Number.POSITIVE_INFINITY);
    for (const size of [1, 2, 3, 7, 1000]) assert.deepEqual(cut(text, size), whole, `pieces of ${size}`);
    assert.equal(whole.at(-1)?.endByte, Buffer.byteLength(text));
  });

  test(`${name}: from the end of any line, the rest is the lines after it`, () => {
    const whole = cut(text, Number.POSITIVE_INFINITY);
    for (const [index, { endByte }] of whole.entries()) {
      const rest = Buffer.from(text).subarray(endByte).toString();
      assert.deepEqual(cut(rest, 5, endByte), whole.slice(index + 1));
    }
  });
}

test("a line that is too long comes in pieces, and no character is cut", () => {
  const lines = cut(streams["a line that is too long"] ?? "", 1000).map(({ line }) => line);
  assert.equal(lines.join(""), `${"日".repeat(longestLine)}short`);
  assert.ok(lines.every((line) => Buffer.byteLength(line) <= longestLine));
});

test("bytes that are no text are replaced, and counted as they are", () => {
  const lines: [string, number][] = [];
  const cutter = createLineCutter((line, endByte) => lines.push([line, endByte]));
  cutter.push(Buffer.from([0xff, 0x0a, 0x61, 0x0a]));
  assert.deepEqual(lines, [
    ["\ufffd", 2],
    ["a", 4],
  ]);
});

function cut(text: string, pieceBytes: number, startByte = 0) {
  const lines: { line: string; endByte: number }[] = [];
  const cutter = createLineCutter((line, endByte) => lines.push({ line, endByte }), startByte);
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    cutter.push(bytes.subarray(from, Math.min(bytes.length, from + pieceBytes)));
  }
  cutter.finish();
  return lines;
}
