import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { promisify } from "node:util";
import { overrideText } from "../../src/setup/project.ts";
import { planServed, type ServedPlan, type SetupServices, serviceAfter } from "../../src/setup/served.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { openLab } from "../lab/lab.ts";
import { noChoices, type PublicProject, publicProjects } from "../setup/public-projects.ts";

const lab = await openLab();
const skip = lab.kind === "ready" ? false : lab.reason;
const run = promisify(execFile);
const filesAtATime = 4;

test("compose reads the public projects as the tests do, and merges each override as it was planned", {
  skip,
}, async (t) => {
  const waiting = [...publicProjects];
  const readSome = async () => {
    for (let shape = waiting.pop(); shape !== undefined; shape = waiting.pop()) await hold(t, shape);
  };
  await Promise.all(Array.from({ length: filesAtATime }, readSome));
});

async function hold(t: TestContext, { name, path, services }: PublicProject): Promise<void> {
  const directory = temporaryDirectory(t);
  const read = await readModel(directory, [path]);
  assert.deepEqual(facts(read.services), facts(services), name);
  const plan = planServed(read.services, noChoices);
  assert.deepEqual(plan, planServed(services, noChoices), name);
  const override = join(directory, "compose.hotpush.yaml");
  writeFileSync(override, overrideText("shop", plan.changes));
  const merged = await readModel(directory, [path, override]);
  const planned = withNetworks(servicesAfter(services, plan), plan);
  assert.deepEqual(facts(merged.services), facts(planned), name);
  const { name: network, external } = merged.networks?.["hotpush-shop"] ?? {};
  const isJoined = plan.upstreams.length > 0;
  assert.deepEqual([network, external], isJoined ? ["hotpush-shop", true] : [undefined, undefined], name);
}

interface Model {
  readonly services: SetupServices;
  readonly networks?: Readonly<Record<string, { readonly name: string; readonly external?: boolean }>>;
}

async function readModel(directory: string, files: readonly string[]): Promise<Model> {
  const named = files.flatMap((file) => ["--file", file]);
  const argv = ["compose", "--project-directory", directory, ...named, "config", "--format", "json"];
  const env = lab.kind === "ready" ? lab.env : {};
  return JSON.parse((await run("docker", argv, { env, maxBuffer: 16 * 1024 * 1024 })).stdout);
}

/** What `init` changes of a service, in one form. */
function facts(services: SetupServices): unknown {
  const entries = Object.entries(services).map(([name, { ports = [], networks = {}, healthcheck }]) => [
    name,
    {
      ports: ports.map(({ target, published, host_ip, protocol }) => ({
        target,
        published,
        host_ip,
        protocol,
      })),
      networks: Object.fromEntries(Object.entries(networks).map(([network, one]) => [network, one ?? {}])),
      test: healthcheck?.test,
    },
  ]);
  return JSON.parse(JSON.stringify(Object.fromEntries(entries)));
}

function servicesAfter(services: SetupServices, { changes }: ServedPlan): SetupServices {
  const all = Object.entries(services).map(([name, one]) => [name, serviceAfter(one, changes[name])]);
  return Object.fromEntries(all);
}

function withNetworks(services: SetupServices, { upstreams }: ServedPlan): SetupServices {
  const all = Object.entries(services).map(([name, service]) => {
    const aliases = [`${name}.shop.containers.internal`];
    const isJoined = upstreams.some((one) => one.endpoint.service === name);
    const joined: object = { ...service.networks, "hotpush-shop": { aliases } };
    return [name, isJoined ? { ...service, networks: joined } : service];
  });
  return Object.fromEntries(all);
}
