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
const pieces = [...'\n \r\ta0=@:/[\\"{\u001b', "\u001b["].flatMap((piece) => [
  piece,
  `${piece}\n`,
  `${piece}a`,
  `${piece}/`,
  `a${piece}`,
]);

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

test("git's configuration of a checkout is read in a moment, whatever its owner wrote", (t) => {
  const read = configReader(t);
  assertQuick(read, size, [
    "",
    '[remote "origin"]',
    '[remote "origin"]\nurl = ',
    '[remote "origin"]\nurl = ssh://',
  ]);
});

test("the URL of a remote is read in a moment", () => {
  assertQuick(parseGitRemoteUrl, size, ["", "https://", "git@", "ssh://git@[", "https://a:"]);
});

test("secrets are looked for in a moment, whatever a file has", () => {
  assertQuick(secretsInText, size, ["", "https://", "//", "//a/"]);
});

test("a line of a script is shown in a moment, whatever it prints", async () => {
  // Compiled for browsers, without types for Node.
  const asset = new URL("../src/front/page/assets/log-text.js", import.meta.url);
  const { plainStyle, readRuns } = (await import(asset.href)) as {
    readonly plainStyle: object;
    readonly readRuns: (text: string, style: object) => unknown;
  };
  assertQuick((text) => printable(text, longestLine), longestLine);
  assertQuick((text) => readRuns(text, plainStyle), longestLine);
});

test("a line of Caddy's log is read in a moment", () => {
  assertQuick(readLoggedRequest, size, ["", '{"request":{"host":"', '{"ts":']);
});

function configReader(t: TestContext): (text: string) => unknown {
  const directory = temporaryDirectory(t);
  mkdirSync(join(directory, ".git"));
  return (text) => {
    writeFileSync(join(directory, ".git/config"), text);
    return webAddress(directory);
  };
}
