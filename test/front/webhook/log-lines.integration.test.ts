import assert from "node:assert/strict";
import { test } from "node:test";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { memoryOf } from "../../harness/processes.ts";
import { exchange, onTheWire } from "../../harness/raw-http.ts";
import { untilDeployment } from "../../harness/records.ts";
import { startService } from "../../harness/service.ts";

const forged = '{"level":"info","event":"forged","msg":"all is well"}';
const hostile = [
  `\n${forged}\n`,
  `\r\n${forged}`,
  "\u001b[2J\u001b]0;title\u0007",
  "\u202egnol\u202c",
  "\u2066x\u2069",
  "\u2028",
];
/** Control characters but the line end, and what turns the direction of writing round. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is looked for
const unprintable = /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u202a-\u202e\u2066-\u2069]/;

test("no delivery id, branch, repository or output of a script can forge a line of the log", async (t) => {
  const script = `#!/bin/sh\nprintf '%b\\n' '\\r${forged}' '\\033[2J\\007\\033]0;x\\007' '\\342\\200\\256gnol' '==> \\033[31mStep\\342\\200\\256'\n`;
  const service = await startService(t, { script });
  let printed = "";
  service.child.stdout?.setEncoding("utf8").on("data", (chunk: string) => {
    printed += chunk;
  });
  for (const text of hostile) {
    await deliver(service.url, githubPush({ repository: `octo/${text}`, ref: "refs/heads/other" }));
    await deliver(service.url, githubPush({ ref: `refs/heads/${text}`, after: text }));
    await deliver(service.url, githubPush({ after: text }));
    const { status, json } = await deliver(service.url, githubPush({ repository: `octo/${text}` }));
    assert.equal(status, 202);
    // On a busy machine a push is stored before it is recorded.
    const isLogged = ({ event, commit }: { readonly event?: string; readonly commit?: unknown }) =>
      /^delivery\.(?:accepted|stored)$/.test(event ?? "") && commit === json.deployment?.commit;
    await service.log.waitFor(isLogged);
  }
  const push = githubPush();
  for (const id of ["\xe2\x80\xae", "a b", `${"a".repeat(65)}`, '"}', "\x7f", "\t"]) {
    const headers = { ...push.headers, "x-github-delivery": id, "user-agent": id };
    const wire = onTheWire({ headers, body: push.body });
    await exchange(service.port, Buffer.from(wire, "latin1"), { replyCount: 1 });
  }
  await service.log.waitForEnding(1);
  await service.end("SIGTERM");
  assert.deepEqual(service.log.otherText, [], "every line is JSON");
  assert.deepEqual(
    service.log.lines.filter(({ event }) => event === "forged"),
    [],
  );
  assert.doesNotMatch(printed, unprintable);
  const ids = new Set(service.log.lines.map(({ delivery }) => delivery).filter((id) => id !== undefined));
  assert.deepEqual(ids, new Set([null, "72d3162e-cc78-11e3-81ab-4c9367dc0958"]));
});

const talkativeScript = `#!/bin/sh
line=$(printf '%01000d' 0)
yes "$line" | head -n 30000
`;

test("a reader that stops reading costs lines and no more than some memory", async (t) => {
  const service = await startService(t, { script: talkativeScript });
  const { child, log, statePath, url } = service;
  const before = memoryOf(child.pid);
  child.stdout?.pause();
  // 30 MB of output: the pipe takes 64 KiB of it, the buffer 4 MiB.
  await deliver(url, githubPush());
  await untilDeployment(statePath, 1, ({ state }) => state === "succeeded");
  assert.equal((await deliver(url, githubPush({ ref: "refs/heads/x" }))).status, 200);
  const { residentBytes, peakBytes } = memoryOf(child.pid);
  t.diagnostic(
    `from ${before.residentBytes >> 20} to ${residentBytes >> 20} MiB, peak ${peakBytes >> 20} MiB`,
  );
  assert(peakBytes - before.residentBytes < 64 * 1024 ** 2);
  child.stdout?.resume();
  assert(Number((await log.waitFor(({ event }) => event === "log.dropped")).count) > 0);
  assert.deepEqual(log.otherText, [], "every line is whole");
});
