import assert from "node:assert/strict";
import { appendFileSync, writeFileSync } from "node:fs";
import { createServer, connect as dial, type Socket } from "node:net";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { noChromium, signInBrowser, startTab, type Tab } from "../../harness/chromium.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { startPage } from "../../harness/page.ts";
import { untilDeployment } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";
import { until } from "../../harness/until.ts";

/** Prints what a test appends to the file `say`, and ends with the code in the file `go`. */
const talking = `#!/bin/sh
touch "$REPO_PATH/say"
tail -n +1 -f -s 0.02 "$REPO_PATH/say" & reader=$!
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
sleep 0.2
kill $reader
exit "$(cat "$REPO_PATH/go")"
`;

const skip = noChromium;

test("a printed line is on the screen at once, with its time, and the log lets go if one scrolls up", {
  skip,
}, async (t) => {
  const { say, tab, end } = await watch(t, { text: `==> Pull\nfirst\n==> Build\n${numbered(1, 200)}` });
  await tab.until(`document.querySelectorAll("#lines details").length === 2`);
  await tab.until(`document.body.innerText.includes("line 200")`);
  assert.equal(await tab.read(`document.getElementById("follow").ariaPressed`), "true");
  const startMs = Date.now();
  say("printed now\n");
  await tab.until(`document.body.innerText.includes("printed now")`);
  assert.ok((await distanceToEnd(tab)) < 40, "it follows");
  await tab.wheel(-600);
  await tab.until(`document.getElementById("follow").ariaPressed === "false"`);
  const before = await distanceToEnd(tab);
  say(numbered(201, 230));
  await tab.until(
    `[...document.querySelectorAll(".block")].at(-1).style.getPropertyValue("--rows") === "31"`,
  );
  assert.ok((await distanceToEnd(tab)) > before + 300, "it lets go");
  await tab.read(`document.getElementById("follow").click()`);
  assert.ok((await distanceToEnd(tab)) < 40, "the button leads to the end");
  // Each line has its time, and copied text has neither that nor numbers.
  const time = `document.querySelector("#L204 time")`;
  const shown = `getComputedStyle(${time}).display`;
  assert.equal(await tab.read(shown), "none");
  await tab.read(`document.getElementById("times").click()`);
  assert.notEqual(await tab.read(shown), "none");
  assert.match(await tab.read<string>(`${time}.textContent`), /^\+\d+(?:\.\d\d s|:\d\d\.\d)$/);
  const printedMs = Date.parse(await tab.read<string>(`${time}.title`));
  assert.ok(printedMs >= startMs - 1_000 && printedMs <= Date.now(), `${printedMs - startMs} ms`);
  const copied = `(getSelection().selectAllChildren(document.getElementById("L204")), getSelection().toString())`;
  assert.equal(await tab.read(`(${copied}).trim()`), "printed now");
  await end(0);
  await tab.until(`document.getElementById("tail").textContent === "The log ends here: exit code 0"`);
  await tab.until(
    `document.querySelector("h1").textContent.includes("was deployed") || document.querySelector("h1").textContent.includes("is live")`,
  );
  assert.deepEqual(tab.faults, []);
});

test("the step that failed is open, and a search finds what folded steps hide", { skip }, async (t) => {
  const text = `==> Pull\nneedle one\n==> Build\n${numbered(1, 3_000)}Needle two, needle three\n==> Health check\nno answer\n`;
  const { tab } = await watch(t, { text, exitCode: 1 });
  const open = `[...document.querySelectorAll("#lines details")].map((one) => one.open)`;
  await tab.until(`JSON.stringify(${open}) === "[false,false,true]"`);
  assert.equal(await tab.read(`document.querySelector("#step-3 i").textContent`), "✕");
  await tab.read(`document.getElementById("find").focus()`);
  for (const key of "needle") await tab.press(key);
  await tab.until(`document.getElementById("hits").textContent === "1 of 2"`);
  await tab.press("Enter");
  await tab.until(`document.getElementById("hits").textContent === "2 of 2"`);
  assert.deepEqual(await tab.read(open), [true, true, true]);
  const place = `document.getElementById("L3004").getBoundingClientRect()`;
  await tab.until(`${place}.top > 100 && ${place}.bottom < 800`);
});

test("a log is text, whatever it prints", { skip }, async (t) => {
  const hostile = [
    `<img src=x onerror="document.title='taken'"><script>document.title='taken'</script>`,
    `</p></section><a href="javascript:alert(1)">x</a> javascript:alert(1) data:text/html,x`,
    `see https://example.com/a?b=<script>, (http://example.org/x).`,
    `\u001b[31mred\u001b[0m \u001b[1;38;5;208morange\u001b[0m \u001b]8;;javascript:alert(1)\u0007link\u001b]8;;\u0007`,
    `\u001b[32mgreen ends with its line`,
    `and the next one is plain`,
    `10 %\r100 %`,
  ];
  const { tab } = await watch(t, {
    text: `==> <b>Step</b>\n${hostile.join("\n")}\n`,
    exitCode: 0,
  });
  await tab.until(`document.querySelectorAll(".block p").length === 7`);
  const textOf = (line: number) => tab.read<string>(`document.querySelector("#L${line} > span").textContent`);
  assert.equal(await textOf(2), hostile[0]);
  assert.equal(await textOf(3), hostile[1]);
  assert.equal(await textOf(5), "red orange link");
  assert.equal(await textOf(8), "100 %");
  assert.equal(await tab.read(`document.querySelector("#lines summary span").textContent`), "<b>Step</b>");
  assert.deepEqual(
    await tab.read(`[...document.querySelectorAll("#lines span a")].map((link) => link.href)`),
    ["https://example.com/a?b=", "http://example.org/x"],
  );
  const colours = `[...document.querySelectorAll("#L5 span span")].map(({ style }) => style.fontWeight + style.color)`;
  assert.deepEqual(await tab.read(colours), ["rgb(255, 135, 135)", "700"]);
  assert.equal(await tab.read(`document.querySelector("#L7 span span")`), null);
  assert.equal(await tab.read(`document.querySelectorAll("#lines img, #lines script").length`), 0);
  assert.notEqual(await tab.read("document.title"), "taken");
  assert.deepEqual(tab.faults, []);
});

test("after a lost connection, a sleep or an outage no line is missing and none comes twice", {
  skip,
}, async (t) => {
  const { say, tab, end, cut, freeze, close, reopen } = await watch(t, { text: "==> Cöunt 😀\nline 1\n" });
  const untilSeen = (line: number) =>
    tab.until(`document.getElementById("lines").innerText.includes("line ${line}")`);
  await untilSeen(1);
  for (let from = 2; from < 1_000; from += 500) {
    say(numbered(from, from + 249));
    cut();
    say(numbered(from + 250, from + 499));
    await untilSeen(from + 499);
  }
  // A connection that died in a sleep looks open.
  freeze();
  say(numbered(1_002, 1_100));
  await tab.read(`dispatchEvent(new Event("online"))`);
  await untilSeen(1_100);
  close();
  await tab.until(`!document.getElementById("offline").hidden`);
  await tab.until(`document.getElementById("tail").textContent.startsWith("No connection")`);
  say(numbered(1_101, 1_200));
  await reopen();
  await untilSeen(1_200);
  await tab.until(`document.getElementById("offline").hidden`);
  await end(0);
  await tab.until(`document.getElementById("tail").textContent === "The log ends here: exit code 0"`);
  const raw = `fetch(document.querySelector("#bar a").href).then((answer) => answer.text())`;
  assert.equal((await tab.read<string>(raw)).trimEnd().split("\n").length, 1_201);
  for (const [sought, hits] of [
    ["line", "1 of 1,200"],
    ["line 1200", "1 of 1"],
  ]) {
    const field = `document.getElementById("find")`;
    await tab.read(`${field}.value = "${sought}"; ${field}.dispatchEvent(new Event("input"))`);
    await tab.until(`document.getElementById("hits").textContent === "${hits}"`);
  }
});

test("of 100,000 lines those in sight are elements, and a link leads to a folded one", {
  skip,
}, async (t) => {
  const text = `==> Build\n${numbered(1, 100_000)}==> Health check\nfine\n`;
  const { tab, address } = await watch(t, { text, exitCode: 0 });
  assert.equal(await tab.read(`document.querySelectorAll("#lines .block").length`), 1_001);
  await tab.read(`document.querySelector("details").open = true`);
  await tab.read("scrollTo(0, document.documentElement.scrollHeight / 2)");
  await tab.until(`document.elementFromPoint(700, 400).closest("p")?.id > ""`);
  assert.ok((await tab.read<number>(`document.querySelectorAll("#lines *").length`)) < 6_000);
  await tab.read("scrollTo(0, document.documentElement.scrollHeight)");
  await tab.until(`document.getElementById("L100001") !== null`);
  await tab.open("about:blank");
  await tab.open(`${address}#L77777`);
  await tab.until(`document.querySelector(".chosen > span")?.textContent === "line 77776"`);
  const isInSight = `(({ top, bottom }) => top > 0 && bottom < innerHeight)(document.getElementById("L77777").getBoundingClientRect())`;
  await tab.until(isInSight);
  await tab.read(`document.querySelector("#L77780 a").click()`);
  await tab.until(`location.hash === "#L77780" && document.querySelector(".chosen").id === "L77780"`);
});

function distanceToEnd(tab: Tab): Promise<number> {
  return tab.read(`document.getElementById("log").getBoundingClientRect().bottom - innerHeight`);
}

function numbered(from: number, to: number): string {
  return Array.from({ length: to - from + 1 }, (_, index) => `line ${from + index}\n`).join("");
}

/** A deployment that prints `text` and, with an exit code, ends; and a browser that shows it. */
async function watch(t: TestContext, { text, exitCode }: { text: string; exitCode?: number }) {
  const [service, wire, tab] = await Promise.all([
    startService(t, { script: talking }),
    openWire(t),
    startTab(t),
  ]);
  const page = await startPage(t, service, { PAGE_URL: `http://localhost:${wire.port}` });
  wire.setTarget(page.port);
  const say = (more: string) => appendFileSync(join(service.repoPath, "say"), more);
  const end = async (code: number) => {
    writeFileSync(join(service.repoPath, "go"), String(code));
    await untilDeployment(service.statePath, 1, ({ finishedAtMs }) => finishedAtMs !== null);
  };
  say(text);
  await deliver(service.url, githubPush());
  // Each line has its time.
  const bytes = Buffer.byteLength(text) + 25 * text.split("\n").length - 25;
  const headers = { host: `localhost:${wire.port}` };
  const isThere = async () =>
    Number((await page.ask("GET /api/deployments/1", { headers })).json.logBytes) >= bytes;
  await until("the log", isThere);
  if (exitCode !== undefined) await end(exitCode);
  const address = `http://localhost:${wire.port}/deployments/1`;
  await signInBrowser(tab, service, wire.port);
  await tab.open(address);
  await tab.until(`document.getElementById("log")?.dataset.ready === ""`);
  return { tab, address, say, end, ...wire };
}

/** What is between the browser and the page. */
async function openWire(t: TestContext) {
  const sockets = new Set<Socket>();
  let [target, port] = [0, 0];
  const server = createServer((near) => {
    const far = dial(target, "127.0.0.1");
    sockets.add(near).add(far);
    near.pipe(far).pipe(near);
    for (const one of [near, far]) one.on("error", () => {}).on("close", cut.bind(null, [near, far]));
  });
  const listen = () => new Promise<void>((resolve) => server.listen(port, "localhost", resolve));
  /** Ends every connection; a new one is taken at once. */
  function cut(which: Iterable<Socket> = sockets) {
    for (const socket of which) socket.destroy();
  }
  const close = () => {
    server.close();
    cut();
  };
  await listen();
  port = (server.address() as { port: number }).port;
  t.after(close);
  return {
    port,
    cut: () => cut(),
    close,
    reopen: listen,
    /** Keeps every connection open, and passes nothing on. */
    freeze() {
      for (const socket of sockets) socket.unpipe().pause();
    },
    setTarget: (value: number) => (target = value),
  };
}
