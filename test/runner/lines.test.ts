import assert from "node:assert/strict";
import { test } from "node:test";
import { createLineCutter, lineText, longestLine } from "../../src/runner/lines.ts";

const streams: Readonly<Record<string, string>> = {
  "lines of text": "one\ntwo\nthree\n",
  "empty lines and none at the end": "\n\none\n\nlast",
  "line ends of Windows": "one\r\n\r\ntwo\rmiddle\r\n",
  "characters of several bytes": "é\n日本語 👋\n".repeat(40),
  "a line that is too long": `${"日".repeat(longestLine)}\nshort\n`,
};

for (const [name, text] of Object.entries(streams))
  test(`${name} are the same lines, however the stream is cut`, () => {
    const whole = cut(text, Number.POSITIVE_INFINITY);
    for (const size of [1, 2, 3, 7, 1000]) assert.deepEqual(cut(text, size), whole, `pieces of ${size}`);
    const joined = whole.map(({ line, continues }) => `${continues ? "" : "\n"}${line}`).join("");
    assert.equal(joined.slice(1), text.replace(/\n$/, ""));
  });

test("a line that is too long comes in pieces, and no character is cut", () => {
  const pieces = cut(streams["a line that is too long"] ?? "", 1000);
  assert.deepEqual(
    pieces.map(({ continues }) => continues),
    [false, true, true, true, false],
  );
  assert.ok(pieces.every(({ line }) => Buffer.byteLength(line) <= longestLine && !line.includes("\ufffd")));
});

test("bytes that are no text are replaced, and the end of a line of Windows is left out", () => {
  assert.equal(lineText(Buffer.from([0xff, 0x61, 0x0d])), "\ufffda");
});

function cut(text: string, pieceBytes: number) {
  const lines: { line: string; continues: boolean }[] = [];
  const cutter = createLineCutter((line, continues) => lines.push({ line: line.toString(), continues }));
  const bytes = Buffer.from(text);
  for (let from = 0; from < bytes.length; from += pieceBytes) {
    cutter.push(bytes.subarray(from, Math.min(bytes.length, from + pieceBytes)));
  }
  cutter.finish();
  return lines;
}
