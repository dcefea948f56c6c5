import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { unifiedDiff } from "../../src/init/unified-diff.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const cases: readonly (readonly [string, string])[] = [
  ["", "a\n"],
  ["a\nb\nc\n", "a\nB\nc\n"],
  ["a\n", ""],
  ["1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12\n", "1\nX\n3\n4\n5\n6\n7\n8\n9\n10\nY\n12\n13\n"],
  ["1\n2\n3\n4\n5\n6\n7\n8\n", "0\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"],
];

test("texts that are the same have no difference", () => assert.equal(unifiedDiff("a", "x\n", "x\n"), ""));

for (const [index, [before, after]] of cases.entries()) {
  test(`difference ${index + 1} is one that patch applies`, (t) => {
    const path = join(temporaryDirectory(t), "file");
    writeFileSync(path, before);
    const input = `${unifiedDiff(path, before, after)}\n`;
    const { status, error, stdout } = spawnSync(
      "git",
      ["apply", "--unsafe-paths", "--directory=/", "-p0", "-"],
      {
        input: input.replaceAll(path, path.slice(1)),
        cwd: "/",
        encoding: "utf8",
      },
    );
    assert.equal(status, 0, `${error} ${stdout} ${input}`);
    assert.equal(readFileSync(path, "utf8"), after);
  });
}
