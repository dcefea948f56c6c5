import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { webAddress } from "../src/calls/web-address.ts";
import { parseGitRemoteUrl } from "../src/platform/git.ts";
import { printable } from "../src/platform/terminal.ts";
import { secretsInText } from "../src/redaction.ts";
import { readLoggedRequest } from "../src/rollout/requests.ts";
import { longestLine } from "../src/runner/log-file.ts";
import { temporaryDirectory } from "./harness/temporary.ts";

const mostMs = 50;
const size = 64 * 1024;
/** What a pattern that looks at each place again and again would be slow with. */
const pieces = [...'\n \r\ta0=@:/[\\"{\u001b', "\u001b["].flatMap((piece) =>
  ["", "\n", "a", "/"].map((after) => piece + after).concat(`a${piece}`),
);

function assertQuick(read: (text: string) => unknown, most: number, starts: readonly string[] = [""]): void {
  for (const start of starts)
    for (const piece of pieces) {
      const text = `${start}${piece.repeat((most - start.length - 1) / piece.length)}\u0001`;
      // The least of some: the first compiles the pattern.
      const tookMs = Math.min(...[1, 2, 3].map(() => cpuMsOf(() => read(text))));
      assert.ok(tookMs <= mostMs, `${JSON.stringify([start, piece])}: ${tookMs} ms`);
    }
}

/** Not by the clock: the machine may stand still for a moment. */
function cpuMsOf(act: () => unknown): number {
  const before = process.cpuUsage();
  act();
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1_000;
}

test("configurations, secrets and logs are read in a moment, whatever others wrote there", (t) => {
  assertQuick(configReader(t), size, ["", '[remote "origin"]\nurl = ', '[remote "origin"]\nurl = ssh://']);
  assertQuick(parseGitRemoteUrl, size, ["", "https://", "git@", "ssh://git@[", "https://a:"]);
  assertQuick(secretsInText, size, ["", "https://", "//", "//a/"]);
  assertQuick(readLoggedRequest, size, ["", '{"request":{"host":"', '{"ts":']);
});

test("a line of a script is shown in a moment, whatever it prints", async () => {
  // Compiled for browsers, without types for Node.
  const asset = new URL("../src/front/page/assets/log-text.js", import.meta.url);
  const { plainText } = (await import(asset.href)) as { readonly plainText: (text: string) => string };
  assertQuick((text) => printable(text, longestLine), longestLine);
  assertQuick(plainText, longestLine);
});

function configReader(t: TestContext): (text: string) => unknown {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, ".git"));
  return (text) => {
    writeFileSync(join(directory, ".git/config"), text);
    return webAddress(directory);
  };
}
