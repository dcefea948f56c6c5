import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { families } from "../../src/calls/metrics.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { startAnswering } from "../harness/hotpush.ts";
import { freePort } from "../harness/listen.ts";
import { makeToken, startPage } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { needs } from "../harness/requirements.ts";
import { endProcess } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../..");
const alerts = join(root, "examples/metrics/alerts.yaml");

/** A service that has deployed once, with a page and a token that may only read. */
async function startMeasured(t: TestContext) {
  const service = await startAnswering(t);
  const page = await startPage(t, service);
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  return { ...page, reader: await makeToken(service, "viewer") };
}

async function scrape(port: number, token: string | null) {
  const headers = token === null ? {} : { authorization: `Bearer ${token}` };
  const response = await fetch(`http://localhost:${port}/metrics`, { headers });
  return { status: response.status, text: await response.text() };
}

test("the metrics take a token that may read, and have what was deployed", async (t) => {
  const { port, reader } = await startMeasured(t);
  assert.equal((await scrape(port, null)).status, 401);
  assert.equal((await scrape(port, "hp_wrong")).status, 401);
  const { status, text } = await scrape(port, reader);
  assert.equal(status, 200);
  const success = 'cicd_pipeline_name="default",cicd_pipeline_result="success"';
  assert.match(text, new RegExp(`^cicd_pipeline_run_duration_seconds_count\\{${success}\\} 1$`, "m"));
  assert.match(text, /^hotpush_last_deployment_failed\{cicd_pipeline_name="default"\} 0$/m);
  assert.match(text, /^hotpush_healthy 1$/m);
  const served = [...text.matchAll(/^# TYPE (\w+) /gm)].map(([, name]) => name);
  assert.deepEqual(served, Object.keys(families), "every metric, in the order of its table");
});

test("from a network that may, no token is needed, except behind an unknown proxy", async (t) => {
  const service = await startAnswering(t, { env: { METRICS_NETWORKS: "127.0.0.0/8" } });
  const { port } = await startPage(t, service);
  const ask = async (path: string, headers: Readonly<Record<string, string>> = {}) =>
    (await fetch(`http://localhost:${port}${path}`, { headers })).status;
  assert.equal(await ask("/metrics"), 200);
  for (const path of ["/metrics", "/api/metrics"])
    assert.equal(await ask(path, { "x-forwarded-for": "127.0.0.1" }), 401, path);
  assert.equal(await ask("/metrics", { forwarded: "for=127.0.0.1" }), 401);
  assert.equal(await ask("/metrics", { authorization: "Bearer hp_wrong" }), 401);
  assert.equal(await ask("/api/projects"), 401);
});

test("a real Prometheus reads the metrics, the rules and the dashboard", needs("prometheus"), async (t) => {
  const { port, reader } = await startMeasured(t);
  const { stdout } = await run("promtool", ["check", "rules", alerts]);
  assert.match(stdout, /SUCCESS/);
  const query = await startPrometheus(t, port, reader);
  await until("a scrape", async () => (await query('up{job="hotpush"} == 1')).length === 1);
  const rules = [...readFileSync(alerts, "utf8").matchAll(/^ +expr: (.+)$/gm)].map(([, expr = ""]) => expr);
  const dashboard = readFileSync(join(root, "examples/metrics/dashboard.json"), "utf8");
  const panels = [...dashboard.matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(([, text = ""]) =>
    JSON.parse(text),
  );
  assert.ok(rules.length > 5 && panels.length > 10);
  for (const expression of [...rules, ...panels].map((one) => one.replaceAll("$project", ".*"))) {
    await query(expression);
    for (const [name] of expression.matchAll(/\b(?:hotpush|cicd|process)_\w+(?=[{ [)]|$)/g))
      if (!name.startsWith("cicd_pipeline_name") && !/_(?:result|errors_total|name)$/.test(name))
        assert.ok((await query(name)).length > 0, name);
  }
});

/** @returns what asks it; a query that it does not understand is an error */
async function startPrometheus(t: TestContext, pagePort: number, token: string) {
  const directory = temporaryDirectory(t);
  const port = await freePort();
  writeFileSync(join(directory, "hotpush-token"), token, { mode: 0o600 });
  const example = readFileSync(join(root, "examples/metrics/prometheus.yaml"), "utf8");
  const config = example
    .replace("scheme: https", "scheme: http\n    scrape_interval: 1s")
    .replace("hotpush.example.com", `localhost:${pagePort}`)
    .replace("alerts.yaml", alerts);
  writeFileSync(join(directory, "prometheus.yaml"), config);
  const own = ["--config.file=prometheus.yaml", "--storage.tsdb.path=data"];
  const child = spawn("prometheus", [...own, `--web.listen-address=127.0.0.1:${port}`], {
    cwd: directory,
    stdio: "ignore",
  });
  t.after(() => endProcess(child, "SIGKILL"));
  return async (expression: string): Promise<readonly object[]> => {
    const url = `http://127.0.0.1:${port}/api/v1/query?query=${encodeURIComponent(expression)}`;
    const answer = await fetch(url).catch(() => null);
    if (answer === null || answer.status === 503) return []; // It is starting.
    const { status, data, error } = (await answer.json()) as Answer;
    assert.equal(status, "success", `${expression}: ${error}`);
    return data?.result ?? [];
  };
}

interface Answer {
  readonly status: string;
  readonly error?: string;
  readonly data?: { readonly result: readonly object[] };
}
