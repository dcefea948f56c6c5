import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { createLineCutter, openLog, readLog } from "../../../src/runner/log-file.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

interface CutLine {
  readonly text: string;
  readonly endByte: number;
  readonly printedAt: string | null;
}

// For a browser, so without types for here.
const asset = new URL("../../../src/front/page/assets/log-text.js", import.meta.url);
const { cutLines } = (await import(asset.href)) as {
  readonly cutLines: (bytes: Uint8Array, from: number, most: number) => readonly CutLine[];
};

test("the browser reads a log as the server does, also lines that are cut because they are long", (t) => {
  const path = join(temporaryDirectory(t), "1.log");
  const log = openLog(path);
  const cutter = createLineCutter((line) => log.write([line], 1e12));
  cutter.push(Buffer.from(`==> Step\r\n\né😀\n${"xé".repeat(9_000)}\nlast`));
  cutter.finish();
  log.close();
  const lines = [...readLog(path)].flat();
  assert.deepEqual(
    cutLines(readFileSync(path), 0, 99),
    lines.map(({ text, endByte, printedAtMs }) => ({
      text,
      endByte,
      printedAt: new Date(printedAtMs ?? 0).toISOString(),
    })),
  );
});
