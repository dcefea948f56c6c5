import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { callRun } from "../../src/calls/client.ts";
import { endProcess, type RunningService } from "./service.ts";
import { linesOf, type Scope, temporaryDirectory } from "./temporary.ts";
import { until } from "./until.ts";

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Why tests with a browser are skipped; false: there is one. */
export const noChromium =
  program === undefined ? "no Chromium is installed: apt-get install chromium" : false;

interface Answer {
  readonly id?: number;
  readonly method?: string;
  readonly params?: object;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

interface Evaluated {
  readonly result: { readonly value: unknown };
  readonly exceptionDetails?: {
    readonly exception?: { readonly description?: string };
    readonly text: string;
  };
}

/** The tab of a browser without a window. */
export type Tab = Awaited<ReturnType<typeof startTab>>;

/** Starts a real Chromium with a profile of its own, and takes its tab. */
export async function startTab(scope: Scope, { width = 1280, height = 800 } = {}) {
  const profile = temporaryDirectory(scope);
  const headless = ["--headless=new", "--no-sandbox", "--disable-gpu", "--no-first-run", "--hide-scrollbars"];
  const own = ["--remote-debugging-port=0", "--disable-dev-shm-usage", `--user-data-dir=${profile}`];
  const child = spawn(program ?? "", [...headless, ...own, "about:blank"], { stdio: "ignore" });
  scope.after(() => endProcess(child, "SIGKILL"));
  const socket = new WebSocket(await until("the tab of Chromium", () => addressOfTab(profile)));
  scope.after(() => socket.close());
  const waiting = new Map<number, (answer: Answer) => void>();
  const faults: string[] = [];
  socket.addEventListener("message", ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.id !== undefined) return waiting.get(answer.id)?.(answer);
    const fault = JSON.stringify(answer.params);
    const isFault = /^Runtime\.exceptionThrown$|^Log\.entryAdded$/.test(answer.method ?? "");
    if (isFault && !fault.includes('"level":"info"')) faults.push(fault);
  });
  await once(socket, "open");
  let lastId = 0;
  const call = <Result>(method: string, params: object = {}) =>
    new Promise<Result>((resolve, reject) => {
      const id = ++lastId;
      waiting.set(id, ({ error, result }) =>
        error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result as never),
      );
      socket.send(JSON.stringify({ id, method, params }));
    });
  for (const domain of ["Page", "Runtime", "Log", "Network"]) await call(`${domain}.enable`);
  const metrics = { width, height, deviceScaleFactor: 1, mobile: width < 500 };
  await call("Emulation.setDeviceMetricsOverride", metrics);

  async function read<Value>(expression: string): Promise<Value> {
    const options = { expression, awaitPromise: true, returnByValue: true };
    const { result, exceptionDetails } = await call<Evaluated>("Runtime.evaluate", options);
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value as Value;
  }

  const untilTrue = async (expression: string, withinMs?: number) => {
    // While a page is being replaced there is nothing to ask.
    const ask = () => read<boolean>(expression).catch(() => false);
    await until(expression, ask, withinMs).catch((error: Error) => {
      throw new Error([error.message, ...faults].join("\n"));
    });
  };

  return {
    call,
    read,
    faults,
    until: untilTrue,
    async open(url: string) {
      await call("Page.navigate", { url });
      await untilTrue(
        `document.readyState === "complete" && location.href.startsWith(${JSON.stringify(url)})`,
      );
    },
    async press(key: string) {
      const text = key.length === 1 ? { text: key } : key === "Enter" ? { text: "\r" } : {};
      const code = key === "Enter" ? { windowsVirtualKeyCode: 13 } : {};
      const modifiers = /^[A-Z]$/.test(key) ? 8 : 0;
      await call("Input.dispatchKeyEvent", { type: "keyDown", key, modifiers, ...text, ...code });
      await call("Input.dispatchKeyEvent", { type: "keyUp", key, modifiers, ...code });
    },
    /** Turns the wheel in the middle of the window. */
    async wheel(deltaY: number) {
      const place = { x: width / 2, y: height / 2, deltaX: 0, deltaY };
      await call("Input.dispatchMouseEvent", { type: "mouseWheel", ...place });
    },
  };
}

async function addressOfTab(profile: string): Promise<string | undefined> {
  const [port] = linesOf(join(profile, "DevToolsActivePort"));
  if (!port) return undefined;
  const targets = (await (await fetch(`http://127.0.0.1:${port}/json/list`)).json()) as readonly Target[];
  return targets.find(({ type }) => type === "page")?.webSocketDebuggerUrl;
}

interface Target {
  readonly type: string;
  readonly webSocketDebuggerUrl: string;
}

/** As a person does: follows the link, and presses the button. */
export async function signInBrowser(tab: Tab, { statePath }: RunningService, port: number): Promise<void> {
  const { link } = await callRun(statePath, "makeLink", { name: "Ada Park", role: "operator" });
  await tab.open(`http://localhost:${port}/sign-in?link=${link}`);
  await tab.read(`document.querySelector("form button").click()`);
  await tab.until(`location.pathname === "/" && document.readyState === "complete"`);
}
