import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { createServer } from "node:http";
import { test } from "node:test";
import { pino } from "pino";
import { eventsIn } from "../../src/calls/events.ts";
import { claimNext, noteStep } from "../../src/deployments/store.ts";
import { logPath, openLog } from "../../src/runner/log-file.ts";
import { listenHere } from "../harness/listen.ts";
import { openDefault, pushOf, record } from "../harness/store.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("a step that begins while the log is sent stands between its lines", async (t) => {
  const statePath = temporaryDirectory(t);
  const store = openDefault(statePath);
  t.after(store.close);
  record(store, pushOf());
  const deployment = store.transaction(() => claimNext(store));
  assert(deployment);
  const log = pino({ level: "silent" });
  const events = new EventEmitter();
  // More than a connection holds, so that the reader decides when it is sent.
  const output = openLog(logPath(statePath, 1));
  const print = (text: string) => {
    output.add(Buffer.from(text));
    output.flush(Date.now());
    events.emit("1");
  };
  for (let count = 0; count < 30_000; count += 1) output.add(Buffer.from("a line of the log so far"));
  print("the last line of the log so far");
  const reply = eventsIn({ store, events, logStatePath: statePath, log }, deployment, {
    ...{ fromByte: 0, isFollowing: true },
  });
  const server = createServer(async (_, response) => {
    const written = reply.write(response);
    for (const name of ["Build", "Check"]) {
      print(`before ${name}`);
      print(`==> ${name}`);
      noteStep(store, deployment, name, log);
      events.emit("1");
    }
    await written;
  });
  const port = await listenHere(t, server);
  const response = await fetch(`http://127.0.0.1:${port}/`);
  const seen: string[] = [];
  let rest = "";
  for await (const piece of response.body ?? []) {
    const lines = (rest + Buffer.from(piece).toString()).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) seen.push(nameOf(JSON.parse(line)));
    if (seen.at(-1) === "==> Check") break;
  }
  assert.deepEqual(seen.filter((name) => !name.includes("so far")).slice(1), [
    "before Build",
    "Build begins",
    "==> Build",
    "before Check",
    "Build is over",
    "Check begins",
    "==> Check",
  ]);
});

function nameOf({
  event,
  line,
  step,
}: {
  event: string;
  line?: string;
  step?: { name: string; durationMs: unknown };
}) {
  if (step) return `${step.name} ${step.durationMs === null ? "begins" : "is over"}`;
  return line ?? event;
}
