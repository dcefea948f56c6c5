import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { test } from "node:test";
import { checks } from "../../src/doctor/examine.ts";
import {
  type DoctorCheck,
  git,
  makePlace,
  type Place,
  probe,
  runDoctor,
  runInShell,
  setSettings,
} from "../harness/doctor.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import { startService } from "../harness/service.ts";

const bin = join(import.meta.dirname, "../../bin");
const nobody = `http://127.0.0.1:${await freePort()}`;
const probeUrl = (place: Place, url: string) => probe(place, "public-url", { args: ["--url", url] });

test("if all is well, every check passes or is skipped, and nothing changes", async (t) => {
  const place = makePlace(t);
  const service = await startService(t, { repoPath: place.repoPath, statePath: place.statePath });
  setSettings(place, { WEBHOOK_PORT: String(service.port) });
  const files = () => [readFileSync(place.envFile, "utf8"), git(place, "status", "--porcelain", "--ignored")];
  const before = files();
  const { code, stdout } = await runDoctor(place, { args: ["--json", "--url", service.url] });
  assert.deepEqual(files(), before, "it changes nothing");
  const report: { problems: number; checks: readonly DoctorCheck[] } = JSON.parse(stdout);
  assert.deepEqual(
    report.checks.filter(({ outcome }) => outcome === "faulty"),
    [],
  );
  assert.deepEqual([code, report.problems], [0, 0]);
  assert.equal(report.checks.length, checks.filter(({ about }) => about !== "server").length);
  assert.equal((await probeUrl(place, `${service.url}/webhook`)).outcome, "ok");
  setSettings(place, { WEBHOOK_URL: `${service.url}/webhook` });
  assert.equal((await probe(place, "public-url")).outcome, "ok");
  const proxy = createServer((_, response) => response.writeHead(404).end("<html>"));
  const [fault] = (await probeUrl(place, `http://127.0.0.1:${await listenHere(t, proxy)}`)).faults;
  assert.deepEqual([fault?.severity, fault?.change?.includes("/webhook")], ["problem", true]);
});

test("public-url: no answer and an unknown name are found; WEBHOOK_URL waits for the service", async (t) => {
  const place = makePlace(t);
  for (const url of [nobody, "https://shop.invalid"])
    assert.equal((await probeUrl(place, url)).faults[0]?.severity, "problem");
  setSettings(place, { WEBHOOK_URL: `${nobody}/webhook` });
  assert.equal((await probe(place, "public-url")).outcome, "skipped");
  for (const wrong of [["nothing"], ["--url", "shop"]])
    assert.equal((await runDoctor(place, { args: wrong })).code, 2);
});

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
  assert.equal((await hotpush("hotpush pause")).code, 0);
  const [fault] = (await probe(place, "queue")).faults;
  assert.deepEqual([fault?.severity, fault?.command], ["warning", "hotpush resume"]);
  const resumed = await hotpush(fault?.command ?? "false");
  assert.equal(resumed.code, 0, resumed.stderr);
  assert.equal((await probe(place, "queue")).outcome, "ok");
});
