/**
 * `node bench/log-view.ts`: the page in a real Chromium. How soon a project with 1,000 deployments is painted, and a log of
 * 100,000 lines is open, how long the frames of scrolling through it take, how soon a printed line is on the screen, and what
 * 200 open pages cost. On a machine that does other things, run it with a high priority.
 */
import { appendFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { signInBrowser, startTab, type Tab } from "../test/harness/chromium.ts";
import { deliver, githubPush } from "../test/harness/delivery.ts";
import { type RunningPage, startPage } from "../test/harness/page.ts";
import { memoryOf } from "../test/harness/processes.ts";
import { untilDeployment } from "../test/harness/records.ts";
import type { RunningService } from "../test/harness/service.ts";
import { startService } from "../test/harness/service.ts";
import { type Scope, temporaryDirectory } from "../test/harness/temporary.ts";
import { until } from "../test/harness/until.ts";
import { fillHistory } from "./growth/history.ts";
import { withScope } from "./scope.ts";
import { percentile } from "./statistics.ts";

const lines = 100_000;
const pages = 200;
const deployments = 1_000;
const printedLines = 40;

/** Prints many lines, then what is appended to the file `say`, until there is a file `go`. */
const script = `#!/bin/sh
echo "==> Build"
seq -f '#7 %.0f.118 a line of a build that prints a good deal of what it does, as builds do' ${lines}
touch "$REPO_PATH/say"
tail -n +1 -f -s 0.01 "$REPO_PATH/say" & reader=$!
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
kill $reader
`;

async function main(scope: Scope): Promise<void> {
  const statePath = join(temporaryDirectory(scope), "state");
  fillHistory(statePath, deployments);
  const service = await startService(scope, { script, statePath });
  const page = await startPage(scope, service);
  const tab = await startTab(scope);
  await signInBrowser(tab, service, page.port);
  const project = `http://localhost:${page.port}/projects/default`;
  const rounds = await Array.fromAsync({ length: 21 }, () => painted(tab, project));
  const paints = rounds.map((round) => round["first paint ms"]);
  report(`first paint of a project with ${deployments} deployments, ${rounds.length} times`, {
    "median ms": percentile(paints, 50),
    "fastest ms": Math.min(...paints),
    "slowest ms": Math.max(...paints),
  });
  await deliver(service.url, githubPush());
  const logBytes = await untilPrinted(page);
  await tab.call("Page.addScriptToEvaluateOnNewDocument", { source: noteOpened });
  const address = `http://localhost:${page.port}/deployments/${deployments + 1}`;
  console.log(`${lines.toLocaleString("en-US")} lines, ${(logBytes / 1e6).toFixed(1)} MB`);
  for (let round = 0; round < 3; round += 1) report("open, while it runs", await opened(tab, address));
  report("a printed line on the screen", await latencies(tab, service));
  report(`${pages} open pages`, await costOfPages(page, service, logBytes));
  writeFileSync(join(service.repoPath, "go"), "0");
  await untilDeployment(service.statePath, deployments + 1, ({ finishedAtMs }) => finishedAtMs !== null);
  for (let round = 0; round < 3; round += 1) report("open, when it is over", await opened(tab, address));
  report("unfold", await framesOf(tab, unfold));
  report("scroll by 400 px a frame", await framesOf(tab, scrollFast));
  report("scroll by 12,000 px a frame", await framesOf(tab, scrollThrough));
  report("jump to 60 places", await framesOf(tab, jump));
  report("search, per letter typed", await searched(tab));
}

function report(name: string, figures: Readonly<Record<string, number>>): void {
  const text = Object.entries(figures).map(([what, value]) => `${what} ${value.toFixed(0)}`);
  console.log(`${name}: ${text.join(", ")}`);
}

async function untilPrinted({ ask }: RunningPage): Promise<number> {
  return await until("the whole log", async () => {
    const before = Number((await ask(`GET /api/deployments/${deployments + 1}`)).json.logBytes);
    await new Promise((resolve) => setTimeout(resolve, 500));
    return (
      before > lines * 50 &&
      before === Number((await ask(`GET /api/deployments/${deployments + 1}`)).json.logBytes) &&
      before
    );
  });
}

/** Runs in the page: notes when the log is there and was painted. */
const noteOpened = `
  const look = () => document.getElementById("log")?.dataset.ready === ""
    ? requestAnimationFrame(() => { window.openedMs = performance.now(); })
    : requestAnimationFrame(look);
  requestAnimationFrame(look);
`;

async function opened(tab: Tab, address: string) {
  const { "first paint ms": paintMs } = await painted(tab, address);
  await tab.until("window.openedMs > 0");
  return { "first paint ms": paintMs, ms: await tab.read<number>("openedMs") };
}

/**
 * How soon after the way to it was taken a screen is painted, how many KB of it come before compression, and when the answer
 * was whole. The browser comes from the projects: it has the assets, and its process runs.
 */
async function painted(tab: Tab, address: string) {
  await tab.open(new URL("/", address).href);
  await tab.open(address);
  const paint = `performance.getEntriesByName("first-contentful-paint")[0]?.startTime ?? 0`;
  await tab.until(`(${paint}) > 0`);
  const navigation = `performance.getEntriesByType("navigation")[0]`;
  return {
    "first paint ms": await tab.read<number>(paint),
    "answer ms": await tab.read<number>(`${navigation}.responseEnd`),
    KB: await tab.read<number>(`${navigation}.encodedBodySize / 1000`),
  };
}

async function latencies(tab: Tab, { repoPath }: RunningService) {
  await tab.read(`(() => {
    window.shown = {};
    new MutationObserver(() => {
      for (const [, id] of document.getElementById("lines").lastElementChild.lastElementChild.textContent.matchAll(/printed (\\d+)/g))
        if (!(id in shown)) { shown[id] = 0; requestAnimationFrame(() => { shown[id] = Date.now(); }); }
    }).observe(document.getElementById("lines"), { childList: true, subtree: true });
  })()`);
  const taken: number[] = [];
  for (let id = 1; id <= printedLines; id += 1) {
    const printedMs = Date.now();
    appendFileSync(join(repoPath, "say"), `printed ${id}\n`);
    await tab.until(`shown[${id}] > 0`);
    taken.push((await tab.read<number>(`shown[${id}]`)) - printedMs);
  }
  return { "median ms": percentile(taken, 50), "slowest ms": Math.max(...taken) };
}

/** Each does what a page in a browser does, and stays. */
async function costOfPages(page: RunningPage, { child, repoPath }: RunningService, logBytes: number) {
  const headers = { authorization: `Bearer ${page.token}` };
  const own = memoryOf(page.pid).residentBytes;
  const runs = memoryOf(child.pid).residentBytes;
  const ending = new AbortController();
  let heard = 0;
  const address = `http://localhost:${page.port}/api/deployments/${deployments + 1}`;
  for (let count = 0; count < pages; count += 1) {
    if (count % 20 === 0) await (await fetch(`${address}/log?format=timed`, { headers })).arrayBuffer();
    const events = await fetch(`${address}/events?from=${logBytes}`, { headers, signal: ending.signal });
    void (async () => {
      for await (const piece of events.body ?? [])
        if (Buffer.from(piece).includes("to everybody")) heard += 1;
    })().catch(() => null);
  }
  const saidMs = Date.now();
  appendFileSync(join(repoPath, "say"), "to everybody\n");
  await until("every page", () => heard >= pages);
  const lastMs = Date.now() - saidMs;
  const cost = {
    "page process MB more": (memoryOf(page.pid).residentBytes - own) / 1e6,
    "run MB more": (memoryOf(child.pid).residentBytes - runs) / 1e6,
    "last page has a line after ms": lastMs,
  };
  ending.abort();
  return cost;
}

/** Runs in the page. */
const unfold = `async (frame) => {
  for (const step of document.querySelectorAll("#lines details")) step.open = true;
  for (let count = 0; count < 10; count += 1) await frame();
}`;
const scrollFast = `async (frame) => {
  for (scrollTo(0, 0); scrollY + innerHeight < 200_000; scrollBy(0, 400)) await frame();
}`;
const scrollThrough = `async (frame) => {
  for (scrollTo(0, 0); scrollY + innerHeight < document.documentElement.scrollHeight - 2; scrollBy(0, 12_000)) await frame();
}`;
const jump = `async (frame) => {
  for (let place = 0; place < 60; place += 1) {
    scrollTo(0, document.documentElement.scrollHeight * ((place * 37) % 60) / 60);
    for (let count = 0; count < 4; count += 1) await frame();
  }
}`;

async function framesOf(tab: Tab, move: string) {
  const frames = await tab.read<readonly number[]>(`(async () => {
    const frames = [];
    let last = await new Promise(requestAnimationFrame);
    await (${move})(async () => {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      frames.push(now - last);
      last = now;
    });
    return frames;
  })()`);
  const long = frames.filter((frame) => frame > 50).length;
  return {
    frames: frames.length,
    "median ms": percentile(frames, 50),
    "slowest ms": Math.max(...frames),
    "over 50 ms": long,
  };
}

async function searched(tab: Tab) {
  const taken: number[] = [];
  for (const text of ["a", "pr", "#7 9", "99999.118"])
    taken.push(
      await tab.read<number>(`(async () => {
        const [field, said] = [document.getElementById("find"), document.getElementById("hits")];
        field.value = ${JSON.stringify(text)};
        const startMs = performance.now();
        field.dispatchEvent(new Event("input"));
        said.textContent = "";
        while (said.textContent === "") await new Promise(requestAnimationFrame);
        return performance.now() - startMs;
      })()`),
    );
  return { "slowest ms": Math.max(...taken) };
}

await withScope(main);
