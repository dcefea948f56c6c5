import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { openServiceLog } from "../../src/calls/service-log.ts";
import type { Project } from "../../src/projects/project.ts";
import { createRedactor } from "../../src/redaction.ts";
import { type FakeContainer, logged, startFakeEngine } from "../harness/fake-engine.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** The log of a container, whose engine answers with these bytes, as lines. */
async function readWith(t: TestContext, container: Partial<FakeContainer>, bytes: readonly Buffer[]) {
  const directory = temporaryDirectory(t);
  const { containers, env, log } = await startFakeEngine(t, directory);
  containers.push({ id: "aaa1", service: "web", number: 1, ...container });
  const project = {
    settings: { repoPath: directory },
    hostDirectory: async () => directory,
    script: () => ({ environment: env, redactor: createRedactor, secretCommands: { MAIL_USER: ["pass"] } }),
  } as unknown as Project;
  const wanted = { service: "web", tail: 100, follow: "false" } as const;
  const { write } = await openServiceLog(project, wanted, pino({ level: "silent" }));
  const response = new PassThrough();
  const written = write(response as unknown as ServerResponse);
  const { response: engine } = await log("aaa1");
  for (const piece of bytes) engine.write(piece);
  engine.end();
  const [all] = await Promise.all([text(response), written]);
  return Array.from(
    all.matchAll(/^data: (.+)$/gm),
    ([, event = ""]) => (JSON.parse(event) as { line: string }).line,
  );
}

test("lines of a terminal are read in any pieces, and the last one needs no end", async (t) => {
  const raw = Buffer.concat([logged(1, "of-the-container\r\n").subarray(8), logged(2, "no end").subarray(8)]);
  const container = { env: ["DB_PASSWORD=of-the-container"], hasTerminal: true };
  const lines = await readWith(t, container, [raw.subarray(0, 40), raw.subarray(40)]);
  assert.deepEqual(lines, ["***", "no end"]);
});

test("what a command has printed for a container is hidden, whatever its name", async (t) => {
  const lines = await readWith(t, { env: ["MAIL_USER=known-to-few"] }, [logged(1, "as known-to-few\n")]);
  assert.deepEqual(lines, ["as ***"]);
});
