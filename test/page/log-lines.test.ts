import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { createLineCutter } from "../../src/runner/lines.ts";

interface CutLine {
  readonly text: string;
  readonly endByte: number;
}

type CutLines = (bytes: Uint8Array, isOver: boolean) => readonly CutLine[];

// For a browser, so without types for here.
const asset = new URL("../../src/page/assets/log-lines.js", import.meta.url);
const { cutLines } = (await import(asset.href)) as { readonly cutLines: CutLines };

const pieces = fc.oneof(
  fc.constantFrom("\n", "\r\n", "\r", "é", "==> Step\n", "😀"),
  fc.string({ maxLength: 40 }),
  fc.integer({ min: 8_150, max: 17_000 }).map((length) => "xé".repeat(length / 3)),
);

test("the browser numbers lines as the server does, also those that are cut because they are long", () => {
  fc.assert(
    fc.property(fc.array(pieces, { maxLength: 12 }), (all) => {
      const bytes = Buffer.from(all.join(""));
      const lines: CutLine[] = [];
      const cutter = createLineCutter((text, endByte) => lines.push({ text, endByte }));
      cutter.push(bytes);
      cutter.finish();
      assert.deepEqual(cutLines(bytes, true), lines);
      const endedByte = bytes.lastIndexOf("\n") + 1;
      assert.deepEqual(
        cutLines(bytes, false),
        lines.filter(({ endByte }) => endByte <= endedByte),
      );
    }),
  );
});
