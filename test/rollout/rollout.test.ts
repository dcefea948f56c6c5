import "../harness/environment.ts";
import assert from "node:assert/strict";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import type { ComposeModel } from "../../src/platform/compose.ts";
import { connectEngine, type Engine } from "../../src/platform/docker/engine.ts";
import { ProblemError } from "../../src/problems.ts";
import type { RolloutRequest } from "../../src/rollout/context.ts";
import type { RolloutService } from "../../src/rollout/project.ts";
import { outcomeOf, type RolloutEvent, type RolloutStep } from "../../src/rollout/report.ts";
import { splitContainers, undoImageNames, wavesOf } from "../../src/rollout/roll-service.ts";
import { rollOut } from "../../src/rollout/rollout.ts";
import { awaitDockersHealth, upTimeoutMs } from "../../src/rollout/service-containers.ts";
import { lockRollout, type Version, writeVersions } from "../../src/rollout/state.ts";
import { listenAt, listenHere } from "../harness/listen.ts";
import { isProblem } from "../harness/problems.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import {
  engineWith,
  fakeCaddy,
  liveDirectory,
  sampleContainer,
  sampleRequest,
  sampleRollout,
  sampleService,
  watchedEngine,
} from "./sample.ts";

test("the error of compose for an unreadable file hides the project's secrets", async (t) => {
  const complaint = "app.env: no_secret, token-in-env_file, token-of-the-shell";
  const request = await requestToCompose(t, `echo '${complaint}' >&2; exit 15`);
  const directory = request.target.projectDirectory;
  writeFileSync(join(directory, "app.env"), "API_TOKEN=token-in-env_file\n");
  writeFileSync(join(directory, ".env.example"), "API_TOKEN=no_secret\n");
  const env = { ...request.env, APP_TOKEN: "token-of-the-shell" };
  await assert.rejects(rollOut({ ...request, env }), (error) => {
    assert.ok(error instanceof ProblemError);
    assert.deepEqual(error.problem.evidence, ["app.env: no_secret, ***, ***"]);
    return true;
  });
});

test("a service that a push has removed, and our override still names, is explained", async (t) => {
  const complaint =
    'service "admin" has neither an image nor a build context specified: invalid compose project';
  const request = await requestToCompose(t, `echo '${complaint}' >&2; exit 1`);
  const reason = () =>
    rollOut(request).then(
      () => assert.fail(),
      (error) => (error as ProblemError).message,
    );
  assert.doesNotMatch(await reason(), /hotpush init/);
  const file = join(request.target.projectDirectory, "compose.override.yaml");
  writeFileSync(file, "# Written by `hotpush init`; running that again keeps it up to date.\n");
  assert.match(await reason(), /still names admin\. .* run in the checkout: hotpush init$/);
});

test("variables that compose takes for blank are named once", async (t) => {
  const model = JSON.stringify({ name: "shop", services: { app: { image: "app" } } });
  const warning =
    'time="2026-11-28T19:10:46Z" level=warning msg="The \\"GREETING\\" variable is not set. Defaulting"';
  const texts: string[] = [];
  const request = await requestToCompose(t, `printf '%s\\n' '${warning}' '${warning}' >&2; echo '${model}'`);
  const report = (event: RolloutEvent) => {
    if (event.event === "note") texts.push(event.text);
  };
  await rollOut({ ...request, report }).catch(() => {}); // There is no container to roll out.
  const said = "GREETING is not set here, and is blank in the compose file: write it into .env";
  assert.deepEqual(
    texts.filter((text) => text.includes("GREETING")),
    [said],
  );
});

test("a roll back chooses its version under the lock: the one before the live one", async (t) => {
  const model = JSON.stringify({ name: "shop", services: { app: { image: "app" } } });
  const events: RolloutEvent[] = [];
  const request = {
    ...(await requestToCompose(t, `case "$*" in *--hash*) ;; *) echo '${model}' ;; esac`)),
    back: { commit: undefined },
    lockWaitS: 10,
    report: (event: RolloutEvent) => events.push(event),
  };
  const first = versionOf("1");
  const second = versionOf("2");
  const third = versionOf("3");
  await writeVersions(request.versionsPath, [first, second]);
  const other = await lockRollout(request.lockPath, 0);
  const going = rollOut(request).catch(() => {}); // There is no container to roll out.
  await until("it waits", () => events.some(({ event }) => event === "note"));
  await writeVersions(request.versionsPath, [first, second, third]);
  await other.release();
  await going;
  const started = events.find(({ event }) => event === "started");
  assert.equal(started?.event === "started" && started.commit, second.commit);
});

function versionOf(digit: string): Version {
  const images = { app: { image: "shop-app", id: `sha256:${digit}`, tag: `shop-app:${digit}` } };
  return { commit: digit.repeat(40), finishedAt: `2026-01-0${digit}T00:00:00Z`, images };
}

/** A request to a `docker` that does what `script` says, and an engine that has nothing. */
async function requestToCompose(t: TestContext, script: string) {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "docker"), `#!/bin/sh\n${script}\n`);
  const server = createServer((_, response) => response.end("[]"));
  const socket = await listenAt(t, server, join(directory, "docker.sock"));
  const env = { PATH: [directory, process.env.PATH].join(delimiter) };
  return sampleRequest(directory, { engine: connectEngine(`unix://${socket}`), env });
}

test("after a failure, names return to the old images, unless recreated, or run and not shared", async () => {
  const { engine, posted } = watchedEngine();
  const once = { mode: { how: "run-once" } } as const;
  const app = sampleService();
  const db = sampleService({ name: "db", image: "postgres:17", isBuilt: false });
  const migrate = sampleService({ name: "migrate", image: "shop-migrate", ...once });
  const index = sampleService({ name: "index", ...once });
  const running = new Map([
    ["db", [sampleContainer({ image: "sha256:old-db", imageName: "postgres:17" })]],
    ["migrate", [sampleContainer({ image: "sha256:old-migrate", imageName: "shop-migrate" })]],
    ["index", [sampleContainer({ image: "sha256:old-index" })]],
    ["app", [sampleContainer({ image: "sha256:old" })]],
  ]);
  const outcomes = [migrate, index].map((service) => outcomeOf(service, "ran", {}));
  const services = [migrate, index, db, app];
  // A recreation that was interrupted has no outcome.
  const present = [sampleContainer({ service: "db" }), sampleContainer({ image: "sha256:old" })];
  await undoImageNames({ engine, services, report: () => {} }, running, present, outcomes);
  assert.deepEqual(posted, ["/images/sha256:old/tag?repo=shop-app&tag=latest"]);
});

test("services come in waves: after all that they depend on, and some at once", () => {
  const needs = { db: [], cache: [], migrate: ["db"], app: ["migrate", "db"], worker: ["db"] };
  const services = Object.entries(needs).map(([name, dependsOn]) => ({ name, dependsOn }));
  const wavesIn = (mostAtOnce: number) =>
    wavesOf(services, mostAtOnce).map((wave) => wave.map(({ name }) => name).join(" "));
  assert.deepEqual(wavesIn(9), ["db cache", "migrate worker", "app"]);
  assert.deepEqual(wavesIn(1), ["db", "cache", "migrate", "worker", "app"]);
});

test("compose has the time that the engine needs to stop what it replaces, and hooks have no limit", () => {
  const limitMinutes = (graces: readonly number[], hooks: Partial<RolloutService["hooks"]> = {}) => {
    const service = sampleService({ hooks: { post_start: [], pre_stop: [], ...hooks } });
    const stopped = graces.map((stopGraceS) => sampleContainer({ stopGraceS }));
    return upTimeoutMs([service], stopped) / 60_000;
  };
  const hook = { command: ["sleep", "150"] };
  assert.deepEqual([limitMinutes([]), limitMinutes([600]), limitMinutes([600, 600])], [5, 15, 25]);
  assert.deepEqual(
    [{ post_start: [hook] }, { pre_stop: [hook] }].map((one) => limitMinutes([], one)),
    [360, 360],
  );
});

test("Docker's verdict on a starting service that others await is waited for, and an unhealthy one fails", async (t) => {
  const cases = [
    ["running healthy", null],
    ["running none", null],
    ["running unhealthy", null],
    ["running starting, running starting, running healthy", null],
    ["running starting, restarting starting, running healthy", null],
    ["running starting, running unhealthy", "container_not_healthy"],
    ["running starting, exited starting", "container_not_healthy"],
  ] as const;
  for (const [history, problem] of cases) {
    const states = history.split(", ").map((state) => state.split(" "));
    const engine = engineWith((path) => {
      if (path.startsWith("/containers/json")) return [{ Id: "db" }];
      const [Status, health] = (states.length > 1 ? states.shift() : states[0]) ?? [];
      return { Name: "/db", State: { Status, Health: { Status: health } }, Config: {} };
    });
    const waiting = awaitDockersHealth({ ...sampleRollout(temporaryDirectory(t)), engine }, new Set(["db"]));
    if (problem === null) await waiting;
    else await assert.rejects(waiting, isProblem(problem), history);
    assert.equal(states.length, 1, history);
  }
});

test("Docker's verdict is waited for no longer than the service may take to get healthy", async (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => (nowMs += 500));
  const state = { Status: "running", Health: { Status: "starting" } };
  const engine = engineWith((path) =>
    path.startsWith("/containers/json") ? [{ Id: "db" }] : { Name: "/db", State: state, Config: {} },
  );
  const events: RolloutEvent[] = [];
  const project = { name: "shop", services: [sampleService({ name: "db", healthyTimeoutMs: 2_000 })] };
  const report = (event: RolloutEvent) => events.push(event);
  await awaitDockersHealth(
    { ...sampleRollout(temporaryDirectory(t)), engine, project, report },
    new Set(["db"]),
  );
  const [step] = events;
  assert.match(step?.event === "step" ? step.detail : "", /not known .* after 2 s/);
});

test("the running containers that the live files name stay, else the oldest that serve", () => {
  const one = sampleContainer({ number: 1, image: "sha256:old" });
  const two = sampleContainer({ number: 2 });
  const starting = sampleContainer({ health: "starting" });
  const sick = sampleContainer({ number: 2, health: "unhealthy" });
  const six = [1, 2, 3, 4, 5, 6].map((number) => sampleContainer({ number }));
  const long = { ...two, name: `shop-${"a".repeat(60)}-2`, id: "0123456789abcdef" };
  const [, , three, four] = six;
  assert.ok(three && four);
  const mixed = [one, { ...two, image: "sha256:old" }, three, { ...four, configHash: "new" }];
  const cases: readonly (readonly [string, Parameters<typeof splitContainers>, string])[] = [
    ["killed before the switch", [[one, two], ["shop-app-1"]], "1 | 2"],
    ["killed after the switch", [[one, two], ["shop-app-2"]], "2 | 1"],
    ["the file names nothing that runs", [[starting, two], ["shop-app-9"]], "2 | 1"],
    ["nothing was ever switched", [[one, two], []], "1 | 2"],
    ["none is healthy", [[starting], []], "1 | "],
    ["the file names a sick one", [[one, sick], ["shop-app-2"]], "1 | 2"],
    ["it has ended", [[sampleContainer({ status: "exited" })], ["shop-app-1"]], " | 1"],
    ["the name is too long for DNS", [[one, long], ["0123456789ab"]], "2 | 1"],
    ["three replicas", [six, ["shop-app-4", "shop-app-2", "shop-app-3"]], "4 2 3 | 1 5 6"],
    ["workers, whatever number the file has by now", [mixed, []], "1 2 | 3 4"],
  ];
  for (const [claim, given, expected] of cases) {
    const { live, leftover } = splitContainers(...given);
    const numbers = [live, leftover].map((some) => some.map(({ number }) => number).join(" "));
    assert.equal(numbers.join(" | "), expected, claim);
  }
});

test("a version that must go loses its requests before prune has ended, and prune is given up", async (t) => {
  for (const why of ["version_unwanted", "rollout_interrupted"] as const) {
    const stop = new AbortController();
    const steps: RolloutStep[] = [];
    const report = (event: RolloutEvent) => event.event === "step" && steps.push(event.step);
    const rolling = await rollingShop(t, { signal: stop.signal, withPrune: true, report });
    const env = { ...rolling.request.env, HOTPUSH_ORDERS: rolling.directory, DEPLOY_ID: "7" };
    const post: Engine["post"] = async (path, _body, _patienceMs, signal) => {
      if (!path.startsWith("/build/prune")) return Buffer.from("{}");
      if (why === "version_unwanted") writeFileSync(join(rolling.directory, "7"), "back");
      else stop.abort();
      await until("the old version serves", () => rolling.live("app") === "shop-app-1");
      await until("prune is given up", () => signal?.aborted);
      throw new Error("given up");
    };
    const engine = { ...rolling.request.engine, post };
    await assert.rejects(rollOut({ ...rolling.request, env, engine }), isProblem(why));
    assert.deepEqual(rolling.containers(), ["shop-app-1"], why);
    const switches = steps.filter((step) => step === "switch" || step === "roll back");
    assert.deepEqual(switches, ["switch", "roll back"]);
  }
});

test("a stop is seen while the old container drains, however long it may, and it serves again", async (t) => {
  const stop = new AbortController();
  const app = { image: "shop-app", labels: { "hotpush.drain-timeout": "9h", "hotpush.guard": "0" } };
  const rolling = await rollingShop(t, { signal: stop.signal }, { app }, (upstream) => {
    if (rolling.live("app") === "shop-app-2") stop.abort();
    return [upstream("shop-app-1", 1)];
  });
  await assert.rejects(rollOut(rolling.request), isProblem("rollout_interrupted"));
  assert.deepEqual([rolling.live("app"), rolling.containers()], ["shop-app-1", ["shop-app-1"]]);
});

test("a new service whose check fails stays, and those that were replaced beside it go back", async (t) => {
  const server = createServer((_, response) => response.writeHead(500).end());
  const url = `http://127.0.0.1:${await listenHere(t, server)}/`;
  const guardless = { "hotpush.guard": "0" };
  const rolling = await rollingShop(
    t,
    {},
    {
      app: { image: "shop-app", labels: guardless },
      api: { image: "shop-api", labels: { ...guardless, "hotpush.check": url } },
    },
  );
  let nowMs = 0;
  t.mock.method(performance, "now", () => (nowMs += 500));
  await assert.rejects(rollOut(rolling.request), isProblem("proxy_check_failed"));
  assert.deepEqual([rolling.live("app"), rolling.live("api")], ["shop-app-1", "shop-api-1"]);
  assert.deepEqual(rolling.containers(), ["shop-app-1", "shop-api-1"]);
});

test("only a service that the proxy directs is killed 10 s after its drain: others may be at work", async (t) => {
  for (const graceS of [10, 300]) {
    const labels = { "hotpush.drain-timeout": "1s", "hotpush.guard": "0" };
    const { request } = await rollingShop(t, {}, { app: { image: "shop-app", labels } });
    if (graceS === 300) rmSync(join(String(request.env.HOTPUSH_LIVE_PATH), "admin.sock"));
    const posted: string[] = [];
    const post: Engine["post"] = async (path) => {
      posted.push(path);
      return Buffer.alloc(0);
    };
    await rollOut({ ...request, engine: { ...request.engine, post } });
    assert.deepEqual(posted, [`/containers/shop-app-1/stop?t=${graceS}`]);
  }
});

const changedApp: ComposeModel["services"] = { app: { image: "shop-app" } };
type Upstream = (address: string, requests: number) => unknown;

/**
 * A roll-out of the project shop: its service app has a new version, the others are new. Compose, engine and proxy do as little as
 * it needs; `inFlight` says what the proxy counts.
 */
async function rollingShop(
  t: TestContext,
  differences: Partial<RolloutRequest> = {},
  services = changedApp,
  inFlight: (upstream: Upstream) => readonly unknown[] = () => [],
) {
  const directory = temporaryDirectory(t);
  const live = liveDirectory(t);
  writeFileSync(join(live.path, "app"), "shop-app-1");
  const upstream: Upstream = (address, num_requests) => ({ address, num_requests });
  const files = Object.keys(services).map((name) => `{file./run/live/${name}}:80`);
  // Caddy's configuration and its upstreams in one.
  const read = [...files, "/run/live/.requests.log"].map((address) => upstream(address, 0));
  await fakeCaddy(t, live, () => [...read, ...inFlight(upstream)]);
  const model = JSON.stringify({ name: "shop", services });
  const started = join(directory, "started");
  const compose = `#!/bin/sh
case "$*" in
  *--hash*) echo "app new
api new" ;;
  *--format*) echo '${model}' ;;
  *" up "*) : >'${started}' ;;
esac
`;
  writeScript(join(directory, "docker"), compose);
  const removed = new Set<string>();
  const fresh = Object.keys(services).map((name) => (name === "app" ? "shop-app-2" : `shop-${name}-1`));
  const present = () =>
    ["shop-app-1", ...(existsSync(started) ? fresh : [])].filter((name) => !removed.has(name));
  const answer = (path: string) => {
    const [, kind, id = ""] = /^\/(\w+)\/([^/]+)\/json/.exec(path) ?? [];
    if (kind === "images") return { Id: id.startsWith("sha256") ? id : "sha256:new", RepoTags: [] };
    if (kind === "containers") return inspected(decodeURIComponent(id));
    const service = /service=(\w+)/.exec(decodeURIComponent(path))?.[1] ?? "";
    const listed = present().filter((name) => name.startsWith(`shop-${service}`));
    return path.startsWith("/containers/json")
      ? listed.map((name) => ({ Id: name, Names: [`/${name}`] }))
      : [];
  };
  const discard: Engine["delete"] = async (path) => {
    removed.add(/^\/containers\/([^?]+)/.exec(path)?.[1] ?? "");
    return Buffer.alloc(0);
  };
  const request = sampleRequest(directory, {
    engine: { ...engineWith(answer), delete: discard },
    env: { PATH: [directory, process.env.PATH].join(delimiter), HOTPUSH_LIVE_PATH: live.path },
    ...differences,
  });
  return {
    request,
    directory,
    containers: present,
    live: (name: string) => readFileSync(join(live.path, name), "utf8"),
  };
}

/** The healthy container of this name (`shop-app-2`), as the engine describes it. */
function inspected(name: string) {
  const [, service = "", number = ""] = name.split("-");
  const isOld = name === "shop-app-1";
  const labels = { service, "container-number": number, "config-hash": isOld ? "old" : "new" };
  const Labels = Object.fromEntries(
    Object.entries(labels).map(([label, value]) => [`com.docker.compose.${label}`, value]),
  );
  return {
    Id: name,
    Name: `/${name}`,
    Image: isOld ? "sha256:old" : "sha256:new",
    RestartCount: 0,
    Config: { Image: `shop-${service}`, Labels, StopTimeout: 300 },
    State: { Status: "running", ExitCode: 0, Health: { Status: "healthy", Log: [] } },
  };
}
