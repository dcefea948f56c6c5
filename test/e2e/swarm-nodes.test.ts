import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { until } from "../harness/until.ts";
import { assertNoneFailed, type Load, type LoadResult, startLoad, untilAnswered } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { type Behaviour, type Ending, outputOf, versionAt, writeVersion } from "../lab/project.ts";
import { type Registry, startRegistry } from "../lab/registry.ts";
import { hostAddress, makeStack, type SwarmNodes, startNodes, type TestStack } from "../lab/swarm.ts";

const run = promisify(execFile);
const port = 8080;
/** Between two requests of a client. */
const pauseMs = 300;
const started: Load[] = [];

onOwnEngine("together", "a Swarm of three nodes, with Caddy on each", (labEnv) => {
  let nodes: SwarmNodes;
  let registry: Registry;
  let stack: TestStack;
  let number = 0;
  const originOf = (node: number) => `http://${nodes.address(node)}:${port}`;

  before(async () => {
    nodes = await startNodes(labEnv);
    registry = await startRegistry(hostAddress);
    stack = await makeStack(nodes.env(1), originOf(2));
    await stack.edit(`image: ${stack.name}-app`, `image: ${registry.host}/${stack.name}-app`);
    await stack.edit("replicas: 2", "replicas: 3");
    await stack.edit(
      '# driver_opts: { type: nfs, o: "addr=10.0.0.1,nfsvers=4,rw", device: ":/srv/caddy" }',
      `driver_opts: { type: none, o: bind, device: "${join(stack.directory, "caddy")}" }`,
    );
    await mkdir(join(stack.directory, "caddy"));
  });
  after(async () => {
    // Those of a test that failed would go on for ever.
    await Promise.all(started.map((load) => load.stop()));
    await stack?.remove();
    registry?.close();
    await nodes?.remove();
  });

  async function deploy(version: string, behaviour: Behaviour = "graceful"): Promise<Ending> {
    await stack.write(version, behaviour);
    number += 1;
    return stack.hotpush("rollout", "--commit", String(number).padStart(40, "0"));
  }

  function deployWell(version: string): Promise<string> {
    return outputOf(deploy(version));
  }

  test("a project on one machine moves to three, and no request fails (docs/swarm.md)", async (t) => {
    const old = await startOldProject(nodes, stack.directory);
    const atFirst = await loadOn([originOf(1)]);
    const output = await outputOf(deploy("too early"), 1);
    assert.match(output, /This node is not a swarm manager\. Use "docker swarm init"/);
    // 2. A Swarm of all machines, which is also the advice
    await nodes.docker(1, "swarm", "init", "--advertise-addr", nodes.address(1));
    const token = await nodes.docker(1, "swarm", "join-token", "--quiet", "worker");
    for (const node of [2, 3])
      await nodes.docker(node, "swarm", "join", "--token", token, `${nodes.address(1)}:2377`);
    // 5. The stack, without Caddy on the machine that serves
    await nodes.docker(1, "node", "update", "--label-add", "caddy=off", "node1");
    await deployWell("first");
    // 6. The domain gets the addresses of the new machines
    const moved = await loadOn([originOf(2), originOf(3)]);
    const first = await endOf(atFirst);
    // 7. The old containers go, and the first machine's Caddy joins
    await old.down();
    await nodes.docker(1, "node", "update", "--label-rm", "caddy", "node1");
    await until("an answer of node 1", () => answers(originOf(1)), 60_000);
    const all = await loadOn([originOf(1)]);
    const results = [first, await endOf(moved), await endOf(all)];
    t.diagnostic(`${countOf(results)} requests while it moved, none failed`);
    assert.deepEqual(first.at(0)?.versions, ["old"]);
    assertNoneFailed(results.flat());
  });

  test("a roll-out over three nodes pulls from the registry, and no request fails", async (t) => {
    const load = await loadOn([1, 2, 3].map(originOf));
    await deployWell("second");
    const results = await endOf(load);
    t.diagnostic(`${countOf([results])} requests, none failed`);
    assertNoneFailed(results);
    for (const { versions } of results) assert.ok(versions.includes("second"));
  });

  test("draining a node that is out of DNS fails no request", async (t) => {
    const load = await loadOn([1, 2].map(originOf));
    await nodes.docker(1, "node", "update", "--availability", "drain", "node3");
    await untilMovedFrom("node3");
    const results = await endOf(load);
    t.diagnostic(`${countOf([results])} requests, none failed`);
    assertNoneFailed(results);
    await nodes.docker(1, "node", "update", "--availability", "active", "node3");
    await until("an answer of node 3", () => answers(originOf(3)), 60_000);
  });

  test("dockerd killed in the middle of a roll-out fails no request at the other nodes", async (t) => {
    const load = await loadOn([1, 2].map(originOf));
    const rollout = deploy("third");
    await until("the first new task", async () => (await versionAt(originOf(1))) === "third", 60_000);
    await nodes.lab("kill", 3);
    const { code, output } = await rollout;
    const results = await endOf(load);
    t.diagnostic(`${countOf([results])} requests; the roll-out ended with ${code}: ${output}`);
    assertNoneFailed(results);
    await nodes.lab("start", 3);
    await nodes.untilNode(3, "Ready");
    await deployWell("fourth");
  });

  test("after a node lost its power, the others take its tasks over", async (t) => {
    const load = await loadOn([1, 2].map(originOf));
    await nodes.lab("lose", 3);
    await nodes.untilNode(3, "Down");
    await untilMovedFrom("node3");
    const results = await endOf(load);
    const failures = results.flatMap((result) => result.failures);
    t.diagnostic(`${failures.length} of ${countOf([results])} requests failed`);
    // Only those that cannot be sent twice. Each of twelve clients waits for its answer.
    assert.ok(failures.length <= 12);
    assert.deepEqual(
      failures.filter(({ failure }) => !failure?.startsWith("POST")),
      [],
    );
    await nodes.lab("start", 3);
    await until("an answer of node 3", () => answers(originOf(3)), 60_000);
  });

  async function untilMovedFrom(node: string): Promise<void> {
    const isMoved = async () => {
      const all = await runningOn(nodes, stack);
      return all.length === 3 && !all.includes(node);
    };
    await until("three tasks on the other nodes", isMoved, 60_000);
  }
});

/** What there was before: the same app with Caddy, by docker compose. */
async function startOldProject(nodes: SwarmNodes, directory: string) {
  const cwd = join(directory, "old");
  await cp(join(import.meta.dirname, "../lab/app"), join(cwd, "app"), { recursive: true });
  await writeVersion(cwd, "old", "graceful");
  // As in the examples, Caddy asks again while Docker changes the machine's networks.
  const retries = "{\n\t\tlb_try_duration 5s\n\t}";
  await writeFile(join(cwd, "Caddyfile"), `:80 {\n\treverse_proxy app:8080 ${retries}\n}\n`);
  await writeFile(
    join(cwd, "compose.yaml"),
    JSON.stringify({
      services: {
        app: { build: "app" },
        caddy: {
          image: "caddy:2",
          ports: [`${port}:80`],
          volumes: ["./Caddyfile:/etc/caddy/Caddyfile"],
        },
      },
    }),
  );
  const compose = (...args: readonly string[]) =>
    run("docker", ["compose", ...args], { cwd, env: nodes.env(1) });
  await compose("up", "--detach", "--build", "--wait");
  return { down: () => compose("down", "--timeout", "10") };
}

/** The nodes of the app's running tasks, sorted. */
async function runningOn(nodes: SwarmNodes, { name }: TestStack): Promise<readonly string[]> {
  const wanted = ["--filter", "desired-state=running", "--format", "{{.Node}} {{.CurrentState}}"];
  const tasks = (await nodes.docker(1, "service", "ps", `${name}_app`, ...wanted)).split("\n");
  return tasks
    .filter((task) => task.includes("Running"))
    .map((task) => task.split(" ")[0] ?? "")
    .sort();
}

async function answers(origin: string): Promise<boolean> {
  const answer = await fetch(origin, { signal: AbortSignal.timeout(2_000) }).catch(() => null);
  return answer?.ok ?? false;
}

async function loadOn(origins: readonly string[]): Promise<readonly Load[]> {
  const loads = origins.map((origin) => startLoad(origin, pauseMs));
  started.push(...loads);
  await untilAnswered(loads);
  return loads;
}

async function endOf(loads: readonly Load[]): Promise<readonly LoadResult[]> {
  await untilAnswered(loads);
  return Promise.all(loads.map((load) => load.stop()));
}

function countOf(results: readonly (readonly LoadResult[])[]): number {
  return results.flat().reduce((sum, { answers }) => sum + answers.length, 0);
}
