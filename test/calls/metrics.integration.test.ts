import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { families } from "../../src/calls/metrics.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { makeToken, startPage } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const alerts = join(root, "examples/metrics/alerts.yaml");

const service = await startService(test);
const { port } = await startPage(test, service);
await deliver(service.url, githubPush());
await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
const reader = await makeToken(service, "viewer");

async function scrape(token: string | null) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://localhost:${port}/metrics`, { headers });
  return { status: response.status, text: await response.text() };
}

test("the metrics take a token that may read, and have what was deployed", async () => {
  assert.equal((await scrape(null)).status, 401);
  assert.equal((await scrape("hp_wrong")).status, 401);
  const { status, text } = await scrape(reader);
  assert.equal(status, 200);
  const success = 'cicd_pipeline_name="default",cicd_pipeline_result="success"';
  assert.match(text, new RegExp(`^cicd_pipeline_run_duration_seconds_count\\{${success}\\} 1$`, "m"));
  assert.match(text, /^hotpush_last_deployment_failed\{cicd_pipeline_name="default"\} 0$/m);
  assert.match(text, /^hotpush_healthy 1$/m);
  const served = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
  assert.deepEqual(served, Object.keys(families), "every metric, in the order of its table");
});

test("from a network that may, no token is needed, except behind an unknown proxy", async (t) => {
  const { port } = await startPage(t, await startService(t, { env: { METRICS_NETWORKS: "127.0.0.0/8" } }));
  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}) =>
    (await fetch(`http://localhost:${port}${path}`, { headers })).status;
  assert.equal(await ask("/metrics"), 200);
  for (const path of ["/metrics", "/api/metrics"])
    assert.equal(await ask(path, { "x-forwarded-for": "127.0.0.1" }), 401, path);
  assert.equal(await ask("/metrics", { forwarded: "for=127.0.0.1" }), 401);
  assert.equal(await ask("/metrics", { authorization: "Bearer hp_wrong" }), 401);
  assert.equal(await ask("/api/projects"), 401);
});

test(
  "promtool takes the metrics, the alerts and each query of the dashboard",
  needs("prometheus"),
  async (t) => {
    const { text } = await scrape(reader);
    await promtool(["check", "metrics"], text);
    await promtool(["check", "rules", alerts]);
    const config = readFileSync(join(root, "examples/metrics/prometheus.yaml"), "utf8");
    const rules = [...readFileSync(alerts, "utf8").matchAll(/^ +expr: (.+)$/gm)].map(([, expr = ""]) => expr);
    const dashboard = readFileSync(join(root, "examples/metrics/dashboard.json"), "utf8");
    const panels = [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(([, expr = ""]) =>
      JSON.parse(expr).replaceAll("$project", ".*"),
    );
    assert.ok(rules.length > 5 && panels.length > 10);
    const groups = [
      { name: "panels", rules: panels.map((expr, index) => ({ record: `panel_${index}`, expr })) },
    ];
    const directory = temporaryDirectory(t);
    const file = (name: string, content: string) => {
      writeFileSync(join(directory, name), content);
      return join(directory, name);
    };
    await promtool(["check", "rules", file("alerts.yaml", JSON.stringify({ groups }))]);
    file("hotpush-token", reader);
    await promtool(["check", "config", file("prometheus.yaml", config)]);
    for (const expression of [...rules, ...panels])
      for (const [name] of expression.matchAll(/\b(?:hotpush|cicd|process)_\w+(?=[{ [)]|$)/g))
        if (!name.startsWith("cicd_pipeline_name") && !/_(?:result|errors_total|name)$/.test(name))
          assert.ok(text.includes(`\n${name}`), name);
  },
);

/** @throws Error with what it says, if it refuses */
async function promtool(parameters: readonly string[], input = ""): Promise<void> {
  const running = run("promtool", parameters);
  running.child.stdin?.end(input);
  await running;
}
