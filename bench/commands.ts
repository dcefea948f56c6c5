import { execFile, execFileSync, spawn } from "node:child_process";
import { existsSync, openSync, writeSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { operatorSocketPath } from "../src/config/server.ts";
import { commandEnvironment, launcher } from "../test/harness/hotpush.ts";
import { type Scope, temporaryDirectory } from "../test/harness/temporary.ts";
import { until } from "../test/harness/until.ts";
import { pushesToMain } from "./accept.ts";
import { fillHistory } from "./growth/history.ts";
import { type Pace, perRound } from "./pace.ts";
import { startHotpush } from "./peers/hotpush.ts";
import { ms, type Section, type Target } from "./report.ts";
import { withScope } from "./scope.ts";
import { send } from "./send.ts";
import { median, percentile } from "./statistics.ts";

const historySize = 1_000;
const betweenLinesMs = 20;

/** How long a person waits for a command, and for the next line of a deployment. */
export async function measureCommands(pace: Pace): Promise<Section> {
  const { rounds, lines } = pace({ quick: { rounds: 5, lines: 50 }, full: { rounds: 20, lines: 500 } });
  return await withScope(async (scope) => {
    const { statePath, say } = await startTalking(scope);
    const durations = await measureAnswers(statePath, rounds);
    const latencies = await measureLines(scope, statePath, say, lines);
    const follow: Target = {
      what: "`logs -f`: from the script's line to ours, p99",
      aim: "under 100 ms",
      measured: ms(percentile(latencies, 99)),
      isMet: percentile(latencies, 99) < 100,
    };
    const row = (name: string, values: readonly number[]) => [
      name,
      ms(median(values)),
      ms(percentile(values, 99)),
    ];
    return {
      title: "Commands",
      text: `From starting \`hotpush\` to its exit, with ${historySize} deployments in the database; one is running and has printed 1,000 lines. ${rounds} times each, in turns. The last row: from writing a line into a pipe that the deploy script copies to its output, to reading it from \`logs -f\`; ${lines} lines, one every ${betweenLinesMs} ms.`,
      tables: [
        {
          columns: ["", "median", "p99"],
          rows: [
            ...[...durations].map(([args, values]) => row(`\`hotpush ${args}\``, values)),
            row("a line in `logs -f`", latencies),
          ],
        },
      ],
      targets: [...[...durations].map(([args, values]) => targetOf(args, values)), follow],
    };
  });
}

/** A service with a history and a running deployment that prints the lines from a pipe. */
async function startTalking(scope: Scope) {
  const directory = temporaryDirectory(scope);
  const pipe = join(directory, "pipe");
  const statePath = join(directory, "state");
  execFileSync("mkfifo", [pipe]);
  fillHistory(statePath, historySize);
  const script = `#!/bin/sh\necho "==> Build"\nseq 1000\nwhile read -r line; do echo "$line"; done <${pipe}\n`;
  const { hookUrl } = await startHotpush(scope, { statePath, script });
  await until("the control socket", () => existsSync(operatorSocketPath(statePath)));
  for (const push of pushesToMain(1)) await send(hookUrl, push);
  // Waits until the script has opened its end.
  const fd = openSync(pipe, "w");
  return { statePath, say: (line: string) => void writeSync(fd, `${line}\n`) };
}

async function measureAnswers(statePath: string, rounds: number) {
  const ways = ["status", `history --limit ${historySize}`, "logs"] as const;
  const call = async (args: string) => {
    const startMs = performance.now();
    await promisify(execFile)(launcher, args.split(" "), { env: commandEnvironment({ statePath }) });
    return performance.now() - startMs;
  };
  // The first one fills the cache of compiled code.
  for (const way of ways) await call(way);
  return await perRound(ways, rounds, call);
}

async function measureLines(
  scope: Scope,
  statePath: string,
  say: (line: string) => void,
  lines: number,
): Promise<readonly number[]> {
  const child = spawn(launcher, ["logs", "-f"], { env: commandEnvironment({ statePath }) });
  scope.after(() => child.kill());
  const latencies: number[] = [];
  let isFollowing = false;
  createInterface(child.stdout).on("line", (line) => {
    isFollowing = true;
    const [, sentMs] = /^sent (\S+)$/.exec(line) ?? [];
    if (sentMs !== undefined) latencies.push(performance.now() - Number(sentMs));
  });
  await until("the first line", () => isFollowing);
  for (let index = 0; index < lines; index += 1) {
    say(`sent ${performance.now()}`);
    await delay(betweenLinesMs);
  }
  await until("every line", () => latencies.length === lines);
  return latencies;
}

function targetOf(args: string, values: readonly number[]): Target {
  const value = median(values);
  return { what: `\`hotpush ${args}\``, aim: "under 250 ms", measured: ms(value), isMet: value < 250 };
}
