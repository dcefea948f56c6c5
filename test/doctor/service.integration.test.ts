import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { makePlace, probe, runInShell, setSettings } from "../harness/doctor.ts";
import { startService } from "../harness/service.ts";

const bin = join(import.meta.dirname, "../../bin");

test("running: no service, and one with an earlier secret, are found, and fixed by a start", async (t) => {
  const place = makePlace(t);
  const start = async (env: Readonly<Record<string, string>> = {}) => {
    const service = await startService(t, { repoPath: place.repoPath, env });
    setSettings(place, { WEBHOOK_PORT: String(service.port) });
    return service;
  };
  assert.equal((await probe(place, "running")).faults[0]?.severity, "problem");
  const earlier = await start({ WEBHOOK_SECRET: "the secret of before, long enough" });
  assert.equal((await probe(place, "running")).faults[0]?.severity, "problem");
  await earlier.end();
  await start();
  assert.equal((await probe(place, "running")).outcome, "ok");
});

test("queue: a paused queue is found, and its command resumes it", async (t) => {
  const place = makePlace(t);
  await startService(t, { repoPath: place.repoPath, statePath: place.statePath });
  const hotpush = (command: string) =>
    runInShell(place, `STATE_PATH=${place.statePath} ${command.replace("hotpush", join(bin, "hotpush"))}`);
  assert.equal((await probe(place, "queue")).outcome, "ok");
  assert.equal((await hotpush("hotpush pause")).exitCode, 0);
  const [fault] = (await probe(place, "queue")).faults;
  assert.deepEqual([fault?.severity, fault?.command], ["warning", "hotpush resume"]);
  const resumed = await hotpush(fault?.command ?? "false");
  assert.equal(resumed.exitCode, 0, resumed.stderr);
  assert.equal((await probe(place, "queue")).outcome, "ok");
});
