import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { PassThrough } from "node:stream";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { pino } from "pino";
import { safeParse } from "valibot";
import { openServiceLog } from "../../src/calls/service-log.ts";
import { takes } from "../../src/calls/shapes.ts";
import type { Project } from "../../src/projects/project.ts";
import { createRedactor } from "../../src/redaction.ts";
import { type FakeContainer, logged, startFakeEngine } from "../harness/fake-engine.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** The log of a container, whose engine answers with these bytes, as lines and as the engine was asked. */
async function readWith(
  t: TestContext,
  container: Partial<FakeContainer>,
  bytes: readonly Buffer[],
  asked: { readonly since?: string } = {},
) {
  const directory = temporaryDirectory(t);
  const { containers, env, log } = await startFakeEngine(t, directory);
  containers.push({ id: "aaa1", service: "web", number: 1, ...container });
  const project = {
    settings: { repoPath: directory },
    hostDirectory: async () => directory,
    script: () => ({ environment: env, redactor: createRedactor, secretCommands: { MAIL_USER: ["pass"] } }),
  } as unknown as Project;
  const wanted = { service: "web", tail: 100, follow: "false", ...asked } as const;
  const { write } = await openServiceLog(project, wanted, pino({ level: "silent" }));
  const response = new PassThrough();
  const written = write(response as unknown as ServerResponse);
  const { query, response: engine } = await log("aaa1");
  for (const piece of bytes) engine.write(piece);
  engine.end();
  const [all] = await Promise.all([text(response), written]);
  return {
    query,
    lines: Array.from(
      all.matchAll(/^data: (.+)$/gm),
      ([, event = ""]) => (JSON.parse(event) as { line: string }).line,
    ),
  };
}

test("lines of a terminal are read in any pieces, and the last one needs no end", async (t) => {
  const raw = Buffer.concat([logged(1, "of-the-container\r\n").subarray(8), logged(2, "no end").subarray(8)]);
  const container = { env: ["DB_PASSWORD=of-the-container"], hasTerminal: true };
  const { lines } = await readWith(t, container, [raw.subarray(0, 40), raw.subarray(40)]);
  assert.deepEqual(lines, ["***", "no end"]);
});

test("what a command has printed for a container is hidden, whatever its name", async (t) => {
  const { lines } = await readWith(t, { env: ["MAIL_USER=known-to-few"] }, [logged(1, "as known-to-few\n")]);
  assert.deepEqual(lines, ["as ***"]);
});

test("lines since a moment are all that are later, however the moment is written", async (t) => {
  const bytes = [logged(1, "known\n"), logged(1.5, "new\n")];
  for (const since of ["2026-11-26T12:00:01Z", "2026-11-26T14:00:01+02:00", "2026-11-26T12:00:01.000Z"]) {
    const { query, lines } = await readWith(t, {}, bytes, { since });
    assert.equal(query.get("since"), String(Date.parse("2026-11-26T12:00:01Z") / 1_000));
    assert.deepEqual(lines, ["new"], since);
  }
  assert.equal(safeParse(takes.moment, "2026-11-26T12:00:01+02").success, false);
});
