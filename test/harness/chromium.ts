import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import { createInterface } from "node:readline";
import { callRun } from "../../src/calls/client.ts";
import { endProcess, type RunningService } from "./service.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";
import { until } from "./until.ts";

const program = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);

/** Why tests with a browser are skipped; false: there is one. */
export const noChromium =
  program === undefined ? "no Chromium is installed: apt-get install chromium" : false;

/** Starts a real Chromium with a profile of its own. */
export async function startChromium(scope: Scope) {
  const child = spawn(
    program ?? "",
    [
      "--headless=new",
      "--no-sandbox",
      "--disable-gpu",
      "--no-first-run",
      "--remote-debugging-port=0",
      "--disable-dev-shm-usage",
      "--hide-scrollbars",
      `--user-data-dir=${temporaryDirectory(scope)}`,
      "about:blank",
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  scope.after(() => endProcess(child, "SIGKILL"));
  const connection = await connect(await addressOf(child));
  scope.after(connection.close);
  return { newTab: (options?: TabOptions) => newTab(connection, options) };
}

async function addressOf({ stderr }: ChildProcess): Promise<string> {
  if (stderr === null) throw new Error("no stderr");
  for await (const line of createInterface(stderr)) {
    const address = /^DevTools listening on (ws:\S+)/.exec(line)?.[1];
    if (address === undefined) continue;
    // Nobody reads the rest, which must not fill the pipe.
    stderr.resume();
    return address;
  }
  throw new Error("Chromium did not start");
}

type Listener = (method: string, parameters: Readonly<Record<string, unknown>>) => void;

interface Answer {
  readonly id?: number;
  readonly sessionId?: string;
  readonly method?: string;
  readonly params?: Readonly<Record<string, unknown>>;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

type Connection = Awaited<ReturnType<typeof connect>>;

async function connect(address: string) {
  const socket = new WebSocket(address);
  const waiting = new Map<number, (answer: Answer) => void>();
  const listeners = new Map<string, Listener>();
  let lastId = 0;
  socket.addEventListener("message", ({ data }) => {
    const answer = JSON.parse(String(data)) as Answer;
    if (answer.id === undefined)
      return listeners.get(answer.sessionId ?? "")?.(answer.method ?? "", answer.params ?? {});
    waiting.get(answer.id)?.(answer);
    waiting.delete(answer.id);
  });
  await new Promise((resolve, reject) => {
    socket.addEventListener("open", resolve);
    socket.addEventListener("error", () => reject(new Error("Chromium does not answer")));
  });
  return {
    call: <Result>(method: string, params: object, sessionId?: string) =>
      new Promise<Result>((resolve, reject) => {
        const id = ++lastId;
        waiting.set(id, ({ error, result }) =>
          error ? reject(new Error(`${method}: ${error.message}`)) : resolve(result as never),
        );
        socket.send(JSON.stringify({ id, method, params, ...(sessionId && { sessionId }) }));
      }),
    listen: (session: string, listener: Listener) => listeners.set(session, listener),
    close: () => socket.close(),
  };
}

interface Evaluated {
  readonly result: { readonly value: unknown };
  readonly exceptionDetails?: {
    readonly exception?: { readonly description?: string };
    readonly text: string;
  };
}

/** A tab of a browser without a window. */
export type Tab = Awaited<ReturnType<typeof newTab>>;

interface TabOptions {
  readonly width?: number;
  readonly height?: number;
}

async function newTab(connection: Connection, { width = 1280, height = 800 }: TabOptions = {}) {
  const { targetId } = await connection.call<{ targetId: string }>("Target.createTarget", {
    url: "about:blank",
  });
  const attach = { targetId, flatten: true };
  const { sessionId } = await connection.call<{ sessionId: string }>("Target.attachToTarget", attach);
  const call = <Result>(method: string, parameters: object = {}) =>
    connection.call<Result>(method, parameters, sessionId);
  const faults: string[] = [];
  connection.listen(sessionId, (method, parameters) => {
    const fault = JSON.stringify(parameters);
    const isFault = /^Runtime\.exceptionThrown$|^Log\.entryAdded$/.test(method);
    if (isFault && !fault.includes('"level":"info"')) faults.push(fault);
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

/** As a person does: follows the link, and presses the button. */
export async function signInBrowser(tab: Tab, { statePath }: RunningService, port: number): Promise<void> {
  const body = { name: "Ada Park", role: "operator" } as const;
  const { link } = await callRun(statePath, "makeLink", body);
  await tab.open(`http://localhost:${port}/sign-in?link=${link}`);
  await tab.read(`document.querySelector("form button").click()`);
  await tab.until(`location.pathname === "/" && document.readyState === "complete"`);
}
