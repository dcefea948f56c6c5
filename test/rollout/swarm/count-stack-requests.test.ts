import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { RolloutEvent } from "../../../src/rollout/report/report.ts";
import { indented, stackCountingLines } from "../../../src/rollout/requests/caddy-lines.ts";
import { withStackRequestsCounted } from "../../../src/rollout/swarm/count-stack-requests.ts";

const root = join(import.meta.dirname, "../../..");
const caddyfile = `:80 {\n${indented(stackCountingLines, 1)}\n\treverse_proxy tasks.app:80\n}\n`;
const [oldAddress, newAddress] = ["10.0.1.4", "10.0.1.7"];

const answered = (upstream: string, status: number) =>
  access({ status, answered: status, upstream: `${upstream}:8080` });
const log = [
  answered(oldAddress, 200),
  answered(newAddress, 200),
  answered(newAddress, 500),
  access({ status: 502, answered: 0, upstream: `${oldAddress}:8080` }),
  access({ status: 200 }),
  access({ status: 200 }),
  warning("writing: broken pipe"),
  { logger: "http.log.error.log0", status: 502, request: { host: "shop.example.org" } },
];

function access(fields: object): object {
  return { logger: "http.log.access.log0", request: { host: "shop.example.org" }, ...fields };
}

function warning(error: string): object {
  return { msg: "aborting with incomplete response", request: { host: "shop.example.org" }, error };
}

test("the requests that Caddy logged on all nodes are reported, by old and new tasks", async () => {
  const { rollout, events } = stackWith(caddyfile);
  assert.equal(await withStackRequestsCounted(rollout, async () => "done"), "done");
  const site = {
    ...{ host: "shop.example.org", requests: 6, failed: 2, brokeOff: 1, left: 1 },
    ...{ before: { answers: 1, serverErrors: 0 }, after: { answers: 2, serverErrors: 1 } },
  };
  assert.deepEqual(events, [{ event: "requests", sites: [site], missingLines: [] }]);
});

test("a roll-out of a stack that fails reports its requests too", async () => {
  const { rollout, events } = stackWith(caddyfile);
  const failing = withStackRequestsCounted(rollout, async () => {
    throw new Error("the new version is bad");
  });
  await assert.rejects(failing, /the new version is bad/);
  assert.equal(events[0]?.event, "requests");
});

test("without the lines in the stack's Caddyfile, they are reported", async () => {
  const { rollout, events } = stackWith(":80 {\n\treverse_proxy tasks.app:80\n}\n");
  await withStackRequestsCounted(rollout, async () => {});
  assert.deepEqual(events, [{ event: "requests", sites: null, missingLines: stackCountingLines }]);
});

test("a stack without a Caddyfile reports no requests", async () => {
  const { rollout, events } = stackWith("worker_processes 4;");
  await withStackRequestsCounted(rollout, async () => {});
  assert.deepEqual(events, []);
});

test("a log that Docker cannot read changes nothing", async () => {
  const { rollout, events } = stackWith(caddyfile, () => {
    throw new Error("configured logging driver does not support reading");
  });
  assert.equal(await withStackRequestsCounted(rollout, async () => "done"), "done");
  assert.match(JSON.stringify(events), /the requests cannot be counted: .*does not support reading/);
});

test("the example has the lines that are needed", () => {
  const example = readFileSync(join(root, "examples/swarm/Caddyfile"), "utf8");
  assert.ok(example.includes(indented(stackCountingLines.slice(0, -2), 1)));
  assert.ok(example.includes(indented(stackCountingLines.slice(-2), 1)));
});

/** A stack with one service, which has `config`, and one task that ran before. */
function stackWith(config: string, readLog = () => log.map((line) => JSON.stringify(line)).join("\n")) {
  const events: RolloutEvent[] = [];
  const container = { Configs: [{ ConfigID: "c1" }] };
  const answers: Readonly<Record<string, () => unknown>> = {
    "/services": () => [{ ID: "s1", Spec: { TaskTemplate: { ContainerSpec: container } } }],
    "/configs/c1": () => ({ Spec: { Data: Buffer.from(config).toString("base64") } }),
    "/tasks": () => [{ NetworksAttachments: [{ Addresses: [`${oldAddress}/24`] }] }],
  };
  const engine = {
    async get(path: string) {
      const [name = ""] = path.split("?");
      return Buffer.from(name === "/services/s1/logs" ? readLog() : JSON.stringify(answers[name]?.()));
    },
    post: async () => Buffer.alloc(0),
    delete: async () => Buffer.alloc(0),
  };
  const report = (event: RolloutEvent) => void events.push(event);
  return { rollout: { engine, report, project: { name: "shop", services: [] } }, events };
}
