import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { checks } from "../../src/doctor/examine.ts";
import { git, makePlace, runDoctor, setSettings } from "../harness/doctor.ts";
import { startService } from "../harness/service.ts";

test("hotpush doctor: if all is well, every check passes or is skipped, and nothing changes", async (t) => {
  const place = makePlace(t);
  const service = await startService(t, { repoPath: place.repoPath, statePath: place.statePath });
  setSettings(place, { WEBHOOK_PORT: String(service.port) });
  const files = () => [readFileSync(place.envFile, "utf8"), git(place, "status", "--porcelain", "--ignored")];
  const before = files();
  const { exitCode, stdout } = await runDoctor(place, { args: ["--json", "--url", service.url] });
  assert.deepEqual(files(), before, "it changes nothing");
  const report = JSON.parse(stdout);
  const faulty = report.checks.filter(({ outcome }: { outcome: string }) => outcome === "faulty");
  assert.deepEqual(faulty, []);
  assert.deepEqual([exitCode, report.problems], [0, 0]);
  assert.equal(report.checks.length, checks.filter(({ about }) => about !== "server").length);
});

test("hotpush doctor: an unknown check and an invalid URL are a wrong command line", async (t) => {
  const place = makePlace(t);
  const unknown = await runDoctor(place, { args: ["nothing"] });
  assert.equal(unknown.exitCode, 2);
  assert.match(unknown.stderr, /There is no such check; docs\/troubleshooting\.md lists them all\./);
  assert.equal((await runDoctor(place, { args: ["--url", "shop"] })).exitCode, 2);
});
