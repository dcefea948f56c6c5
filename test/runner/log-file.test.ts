import assert from "node:assert/strict";
import { appendFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import fc from "fast-check";
import {
  createLineCutter,
  logBytes,
  longestLine,
  openLog,
  readLastLines,
  readLog,
} from "../../src/runner/log-file.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a line has the time at which it was printed, and each place leads to the lines after it", (t) => {
  const path = pathIn(t);
  const log = openLog(path);
  for (const [index, text] of ["one é", "", "three"].entries()) {
    log.write([text], Date.UTC(2026, 0, 1, 0, 0, index));
  }
  log.close();
  assert.match(readFileSync(path, "utf8"), /^2026-01-01T00:00:00\.000Z one é\n2026-01-01T00:00:01\.000Z \n/);
  const lines = [...readLog(path)].flat();
  assert.deepEqual(
    lines.map(({ text, printedAtMs }) => [text, Number(printedAtMs) % 60_000]),
    [
      ["one é", 0],
      ["", 1_000],
      ["three", 2_000],
    ],
  );
  assert.equal(lines.at(-1)?.endByte, logBytes(path));
  for (const [index, { endByte }] of lines.entries()) {
    assert.deepEqual([...readLog(path, endByte)].flat(), lines.slice(index + 1));
    assert.deepEqual([...readLog(path, endByte - 1)].flat(), lines.slice(index + 1), "within a line");
  }
  assert.deepEqual([...readLog(path, logBytes(path) + 1)], []);
  assert.deepEqual([...readLog(`${path}.none`)], []);
});

test("whatever was printed is read again, however the stream is cut", (t) => {
  const path = pathIn(t);
  const piece = fc.oneof(
    fc.constantFrom("\n", "\r", "é", "2026-01-01T00:00:00.000Z x", "😀"),
    fc.string({ maxLength: 40 }),
  );
  fc.assert(
    fc.property(fc.array(piece, { maxLength: 12 }), fc.integer({ min: 1, max: 9 }), (pieces, size) => {
      writeFileSync(path, "");
      const log = openLog(path);
      const cutter = createLineCutter((line) => log.write([line], 1e12));
      const bytes = Buffer.from(pieces.join(""));
      for (let from = 0; from < bytes.length; from += size) cutter.push(bytes.subarray(from, from + size));
      cutter.finish();
      log.close();
      const printed = bytes.length === 0 ? [] : pieces.join("").replace(/\n$/, "").split("\n");
      assert.deepEqual(
        [...readLog(path)].flat().map(({ text }) => text),
        printed.map((line) => line.replace(/\r$/, "")),
      );
    }),
    { numRuns: 50 },
  );
});

test("a line that is too long comes in pieces, and bytes that are no text are replaced", () => {
  const lines: string[] = [];
  const cutter = createLineCutter((line) => lines.push(line));
  cutter.push(Buffer.alloc(2 * longestLine + 1, "x"));
  cutter.push(Buffer.from("x\nshort\n\xff", "latin1"));
  cutter.finish();
  assert.deepEqual(
    lines.map(({ length }) => length),
    [longestLine, longestLine, 2, 5, 1],
  );
  assert.equal(lines.at(-1), "\ufffd");
});

test("of a log that is too long the first and the last part are kept, and how much is left out", (t) => {
  const path = pathIn(t);
  const log = openLog(path, { firstBytes: 300, lastBytes: 100 });
  let printedBytes = 0;
  for (let number = 1; number <= 100; number += 1) {
    log.write([`line ${number}`], 1e12);
    printedBytes += `2001-09-09T01:46:40.000Z line ${number}\n`.length;
  }
  log.close();
  const texts = [...readLog(path)].flat().map(({ text }) => text);
  assert.deepEqual([texts[0], texts.at(-1)], ["line 1", "line 100"]);
  const [note] = texts.filter((text) => text.startsWith("["));
  const kept = logBytes(path) - "2001-09-09T01:46:40.000Z \n".length - `${note}`.length;
  assert.equal(note, `[${printedBytes - kept} bytes left out here]`);
  assert.ok(logBytes(path) < 300 + 100 + 150);
});

test("after the service died, the log goes on where it was, also after half a line", (t) => {
  const path = pathIn(t);
  const dead = openLog(path);
  dead.write(["one"], 1e12);
  appendFileSync(path, "2001-09-09T01:46:40.000Z tor");
  const next = openLog(path);
  next.write(["two"], 1e12);
  next.close();
  assert.deepEqual(readLastLines(path, 1_000, 0), ["one", "tor", "two"]);
});

function pathIn(t: TestContext): string {
  return join(temporaryDirectory(t), "1.log");
}
