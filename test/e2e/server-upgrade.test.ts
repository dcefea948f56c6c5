import assert from "node:assert/strict";
import "../harness/environment.ts";
import { execFile, spawn } from "node:child_process";
import { chownSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { cp, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { projectNetwork, serverFilesAt, serverStateAt, serviceAlias } from "../../src/config/server.ts";
import { serverCaddyfile, serverComposeFile } from "../../src/setup/server-files.ts";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import { readDeployments, recordedDeliveryCount } from "../harness/records.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { startLoad, startPushes } from "../lab/load.ts";
import { onOwnEngine } from "../lab/on-engine.ts";
import { buildImage, type Ending, endOf, removeImage, spawnHotpush, untilPrinted } from "../lab/project.ts";

const run = promisify(execFile);
const frontId = 9_000;
const appName = "hotpush-e2e-web";

/** Git hosts give up a delivery after ten seconds. */
const hostPatienceMs = 10_000;
const [base, old, own] = ["hotpush-e2e-upgrade:base", "hotpush:e2e-old", "hotpush-e2e-upgrade:own"] as const;
const script = "#!/bin/sh\nuntil [ ! -e wait ]; do sleep 0.1; done\n";

onOwnEngine("one server", "hotpush upgrade replaces the server's Hotpush", (env) => {
  let server: LabServer;

  before(async () => {
    await buildImage(env, base);
    await buildOn(env, base, old, "LABEL version=old");
    server = await makeLabServer(env, old, script);
  });
  after(async () => {
    await server?.remove();
    for (const image of [old, own, base]) await removeImage(env, image);
  });

  test("under load and 20 pushes a second, no push is lost and no request fails", async (t) => {
    const load = startLoad(server.origin, 300);
    const pushes = startPushes(server.origin);
    await until("answers", () => load.answers.length > 30);
    const frontLog = server.followLog("front");
    const { code, output } = await server.hotpush("upgrade", "--yes");
    const soFar = load.answers.length;
    await until("answers after it", () => load.answers.length > soFar + 60);
    const results = await pushes.stop();
    const { answers, failures } = await load.stop();
    assert.equal(code, 0, output);
    assert.match(output, /Replaced front in .+\nReplaced run in .+\nThis server runs hotpush:\d/);
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${answers.length} requests failed`);
    const refused = results.filter(({ status }) => status !== 202);
    assert.deepEqual(refused.slice(0, 3), [], `The log of front:\n${frontLog()}`);
    await until("run has all pushes", () => recordedDeliveryCount(server.runStatePath) === results.length);
    const slowestMs = Math.max(...results.map(({ tookMs }) => tookMs));
    assert.ok(slowestMs < hostPatienceMs, `a push waited ${slowestMs} ms`);
    t.diagnostic(`${results.length} pushes, the slowest took ${slowestMs} ms; ${answers.length} requests`);
    assert.match(
      (await server.containers()).join("\n"),
      /-caddy-1 .+\n.+-front-1 hotpush:\d.+\n.+-run-1 hotpush:\d/,
    );
  });

  test("a second upgrade to the same version changes nothing", async () => {
    const containers = await server.containers();
    const { code, output } = await server.hotpush("upgrade");
    assert.equal(code, 0, output);
    assert.match(output, /Everything is up to date\.\n$/);
    assert.deepEqual(await server.containers(), containers);
  });

  test("it waits for the deployment that runs, and Ctrl-C then changes nothing", async () => {
    await useOwnImage("LABEL version=own");
    await startDeployment();
    const containers = await server.containers();
    const upgrade = startUpgrade();
    const ending = await untilPrinted(
      upgrade,
      /Waiting for deployment \d+ of shop; no other starts/,
      async () => {
        const { output } = await server.hotpush("status");
        assert.match(output, /\nHeld +no deployment starts since .+ hotpush upgrade\n/);
        upgrade.kill("SIGINT");
      },
    );
    assert.equal(ending.code, 1);
    assert.match(ending.output, /given up before anything was changed/);
    assert.deepEqual(await server.containers(), containers);
    assert.doesNotMatch((await server.hotpush("status")).output, /Held/);
  });

  test("when that has ended, it replaces both, and their state stays", async () => {
    const { length } = readDeployments(server.runStatePath);
    const ending = await untilPrinted(startUpgrade(), /Waiting for deployment/, async () => endDeployment());
    assert.equal(ending.code, 0, ending.output);
    assert.equal(readDeployments(server.runStatePath).at(-1)?.state, "succeeded");
    assert.equal(readDeployments(server.runStatePath).length, length);
    assert.match((await server.containers()).join("\n"), /-run-1 hotpush-e2e-upgrade:own/);
  });

  test("if the new front is not healthy, the old version runs again", async () => {
    await useOwnImage('ENTRYPOINT ["false"]');
    const { code, output } = await server.hotpush("upgrade", "--yes");
    assert.equal(code, 1);
    assert.match(output, /The new front is not healthy, so this server runs the old version again/);
    assert.equal((await server.hotpush("upgrade", "--check")).code, 0, "all is as the files say");
  });

  test("if the new run is not healthy, both are the old version again", async () => {
    await useOwnImage(`ENTRYPOINT ["sh", "-c", "[ $0 = front ] && exec tini -- hotpush front; exit 1"]`);
    const { code, output } = await server.hotpush("upgrade", "--yes");
    assert.equal(code, 1);
    assert.match(output, /Replaced front in .+\n.*The new run is not healthy, so this server runs the old/s);
    assert.equal((await server.hotpush("upgrade", "--check")).code, 0, "both are as the files say");
    await startDeployment();
    endDeployment();
    await until("a deployment", () => readDeployments(server.runStatePath).at(-1)?.state === "succeeded");
  });

  /** Makes an image on top of the base, and lets the server have it under a name of its own. */
  async function useOwnImage(lines: string): Promise<void> {
    await buildOn(env, base, own, lines);
    const file = join(server.path, ".env");
    writeFileSync(file, readFileSync(file, "utf8").replace(/^HOTPUSH_IMAGE=.*$/m, `HOTPUSH_IMAGE=${own}`));
  }

  async function startDeployment(): Promise<void> {
    writeFileSync(join(server.checkout, "wait"), "");
    assert.equal((await server.hotpush("deploy", "--detach")).code, 0);
    await until("it runs", () => readDeployments(server.runStatePath).at(-1)?.state === "running");
  }

  function endDeployment(): void {
    assert.ok(existsSync(join(server.checkout, "wait")));
    rmSync(join(server.checkout, "wait"));
  }

  function startUpgrade() {
    return spawnHotpush(server.checkout, server.env, ["upgrade", "--yes"]);
  }
});

async function buildOn(env: NodeJS.ProcessEnv, from: string, tag: string, lines: string): Promise<void> {
  const building = promisify(execFile)("docker", ["build", "--quiet", "--tag", tag, "-"], { env });
  building.child.stdin?.end(`FROM ${from}\n${lines}\n`);
  await building;
}

/** A server on a real engine, from the files that `init` writes, with one project. */
interface LabServer {
  readonly path: string;
  /** STATE_PATH of `run`. */
  readonly runStatePath: string;
  readonly frontStatePath: string;
  /** Where the app of the project answers, and its webhook. */
  readonly origin: string;
  readonly checkout: string;
  readonly env: NodeJS.ProcessEnv;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** Runs a command of this checkout's Hotpush in the project's checkout. */
  readonly hotpush: (...args: readonly string[]) => Promise<Ending>;
  /** Its containers, each as `<name> <image> <id>`. */
  readonly containers: () => Promise<readonly string[]>;
  /** Follows the log of a service, past its replacement. Gives the warnings and errors so far. */
  readonly followLog: (service: string) => () => string;
  readonly remove: () => Promise<void>;
}

/** Starts it with the image `image` of Hotpush. @param script the text of the project's deploy.sh */
async function makeLabServer(labEnv: NodeJS.ProcessEnv, image: string, script: string): Promise<LabServer> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-e2e-"));
  const files = serverFilesAt(join(directory, "etc"));
  const state = serverStateAt(join(directory, "lib"));
  const checkout = join(directory, "srv", "shop");
  const port = await freePort();
  const env = { ...labEnv, SERVER_PATH: files.path };
  const docker = async (...args: readonly string[]) =>
    (await run("docker", args, { env: labEnv, cwd: files.path })).stdout.trim();
  const remove = async () => {
    await docker("compose", "down", "--timeout", "2").catch(() => {});
    await docker("rm", "--force", appName).catch(() => {});
    await docker("network", "rm", projectNetwork("shop")).catch(() => {});
    await rm(directory, { recursive: true, force: true });
  };
  await makeCheckout(checkout, script);
  makeDirectories();
  writeFiles();
  try {
    await startApp(docker, directory);
    await docker("compose", "up", "--detach", "--wait");
    await docker("network", "connect", projectNetwork("shop"), "hotpush-caddy-1").catch(() => {});
  } catch (error) {
    await remove();
    throw error;
  }
  return {
    ...{ path: files.path, runStatePath: state.run, frontStatePath: state.front, checkout, env, docker },
    ...{ remove, origin: `http://127.0.0.1:${port}` },
    hotpush: (...args) => endOf(spawnHotpush(checkout, env, args)),
    async containers() {
      const filter = "label=com.docker.compose.project=hotpush";
      const format = "{{.Names}} {{.Image}} {{.ID}}";
      return (await docker("ps", "--filter", filter, "--format", format)).split("\n").sort();
    },
    followLog(service) {
      const following = spawn("docker", ["compose", "logs", "--follow", service], {
        env: labEnv,
        cwd: files.path,
      });
      let text = "";
      following.stdout.setEncoding("utf8").on("data", (chunk: string) => {
        text += chunk;
      });
      following.unref();
      return () => {
        following.kill();
        return text
          .split("\n")
          .filter((line) => !line.includes('"level":"info"'))
          .join("\n");
      };
    },
  };

  function makeDirectories(): void {
    for (const path of [files.sitesPath, files.projectsPath, files.secretsPath])
      mkdirSync(path, { recursive: true });
    for (const path of Object.values(state)) mkdirSync(path, { recursive: true });
    mkdirSync(join(state.live, "shop"));
    for (const path of [state.front]) chownSync(path, frontId, frontId);
  }

  function writeFiles(): void {
    const variables = {
      ...{ HOTPUSH_IMAGE: image, SERVER_PATH: files.path, STATE_PATH: state.path },
      ...{ FRONT_USER: `${frontId}:${frontId}`, HTTP_PORT: String(port), HTTPS_PORT: "0" },
      DOCKER_SOCKET: (labEnv.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", ""),
    };
    writeFileSync(files.envFile, linesOf(variables));
    writeFileSync(files.composeFile, serverComposeFile([join(directory, "srv")]));
    writeFileSync(files.caddyfile, serverCaddyfile());
    const site = "http://127.0.0.1 {\n\timport deliveries shop\n\timport service shop web 8080\n}\n";
    writeFileSync(join(files.sitesPath, "shop.caddy"), site);
    writeFileSync(join(state.live, "shop", "web"), serviceAlias("web", "shop"));
    const project = { REPO_PATH: checkout, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0" };
    const file = join(files.projectsPath, "shop.env");
    writeFileSync(file, linesOf({ ...project, WEBHOOK_URL: `http://127.0.0.1:${port}/webhook` }), {
      mode: 0o640,
    });
    chownSync(file, 0, frontId);
  }
}

/** A clone of a repository that `run` reaches too, because both are in one directory. */
async function makeCheckout(path: string, script: string): Promise<void> {
  const [remote, who] = [`${path}.git`, ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"]];
  const git = (...args: readonly string[]) => run("git", [...who, ...args]);
  await git("init", "--quiet", "--bare", "--initial-branch=main", remote);
  await git("clone", "--quiet", remote, path);
  writeScript(join(path, "deploy.sh"), script);
  await git("-C", path, "add", "--all");
  await git("-C", path, "commit", "--quiet", "--message", "The first version");
  await git("-C", path, "push", "--quiet", "origin", "HEAD:main");
}

/** The app of the project, which a roll-out would start. */
async function startApp(docker: LabServer["docker"], directory: string): Promise<void> {
  const context = join(directory, "app");
  await cp(join(import.meta.dirname, "../lab/app"), context, { recursive: true });
  writeFileSync(join(context, "behaviour.json"), JSON.stringify({ version: "v1", behaviour: "graceful" }));
  await docker("build", "--quiet", "--tag", appName, context);
  await docker("network", "create", projectNetwork("shop")).catch(() => {});
  const alias = ["--network-alias", serviceAlias("web", "shop")];
  await docker("run", "--detach", "--name", appName, "--network", projectNetwork("shop"), ...alias, appName);
}

function linesOf(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}
