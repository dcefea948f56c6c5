import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { freePort } from "../harness/listen.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf, makeProject, outputOf, type TestProject, untilPrinted } from "../lab/project.ts";

/** Answers with its version and the content of its volumes. A sick one never gets healthy and spoils the data for the others. */
const cacheServer = `
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
const { VERSION, GREETING, SICK, SPOILS, RUDE } = process.env;
if (existsSync("/anonymous/spoilt")) throw new Error("these data are of a newer version");
if (SPOILS) writeFileSync("/anonymous/spoilt", "");
const read = (path) => (existsSync(path) ? readFileSync(path, "utf8").trim() : "");
createServer(({ url }, response) => {
  const isRude = RUDE && url === "/front";
  response.statusCode = isRude || SICK || VERSION === "sick" ? 500 : 200;
  response.end([VERSION, GREETING, read("/anonymous/note"), read("/named/note")].join(" "));
}).listen(8080);
process.on("SIGTERM", () => {
  console.log("asked to stop");
  setTimeout(() => process.exit(0), Number(process.env.MS_TO_END));
});
`;
const ask = 'exec 3<>/dev/tcp/127.0.0.1/8080 && printf "GET / HTTP/1.0\\r\\n\\r\\n" >&3';

/** The command of its health check, in the bash of its image. */
const cacheCheck = `${ask} && read -r _ code _ <&3 && [[ $$code == 200 ]]`;

type Parts = Readonly<Record<string, unknown>>;

onEngine("a service of which two cannot run, whose new version fails", (env) => {
  let project: TestProject;
  let port: number;

  before(async () => {
    project = await makeProject(env);
    port = await freePort();
    for (const version of ["1", "2", "sick"]) await build(version);
  });
  after(() => project?.remove());

  test("an unhealthy image with another configuration goes back, and the next good one is applied", async () => {
    await serving("1");
    const old = await made();
    await compose("sick", { environment: { GREETING: "changed" } });
    const output = await outputOf(project.rollOut(), 1);
    assert.match(output, /FAILED: Container cache-of-\S+ was not healthy after 5(\.\d)? s/);
    assert.match(output, /cache +roll back .* the old version runs again; cache was away for \d+(\.\d)? s$/m);
    assert.equal((await project.containers("cache")).length, 1);
    assert.equal(await answer(), "1 hello anonymous named");
    assert.deepEqual(await made(), old);
    await compose("1", { environment: { GREETING: "changed" } });
    const next = await project.rollOut();
    assert.equal(next.code, 0, next.output);
    assert.equal(await answer(), "1 changed anonymous named");
  });

  test("a healthy version that answers badly is replaced by the old one", async () => {
    const labels = { "hotpush.check": `http://127.0.0.1:${port}/front` };
    await serving("1", { labels });
    await compose("1", { labels, environment: { GREETING: "changed", RUDE: "1" } });
    const output = await outputOf(project.rollOut(), 1);
    assert.match(output, /cache +roll back .* the old version runs again; cache was away for/);
    assert.match(output, /FAILED: cache was healthy but did not answer well through the proxy at \S+front/);
    assert.equal(await answer(), "1 hello anonymous named");
  });

  test("if the old version cannot run any more, the output says so and why", async () => {
    await serving("1", { restart: "no" });
    await compose("2", { environment: { SICK: "1", SPOILS: "1" } });
    const output = await outputOf(project.rollOut(), 1);
    assert.match(
      output,
      /cache +roll back .* the old version could not be brought back: Container cache-of-\S+ ended with exit code 1 before it was healthy\. See: docker compose ps cache/,
    );
    assert.match(output, /FAILED: Container cache-of-\S+ was not healthy after/);
  });

  test("if the engine refuses to create a container, the old one is kept", async () => {
    await serving("1");
    const containers = await project.containers("cache");
    await compose("2", { cpuset: "4000" });
    const output = await outputOf(project.rollOut(), 1);
    assert.match(output, /FAILED: cache was not started: Requested CPUs are not available/);
    assert.match(output, /cache +roll back .* the old version was not touched and serves/);
    assert.deepEqual(await project.containers("cache"), containers);
    assert.equal(await answer(), "1 hello anonymous named");
  });

  test("an interrupted roll-out reports what it leaves", async () => {
    await serving("1");
    await compose("sick");
    const rollout = project.spawnRollout();
    const { code, output } = await untilPrinted(rollout, /cache +recreate/, async () =>
      rollout.kill("SIGTERM"),
    );
    assert.notEqual(code, 0, output);
    assert.match(output, /was interrupted while it was recreated\. To finish it: hotpush rollout cache$/m);
    const again = await outputOf(project.rollOut({ args: ["cache"] }), 1);
    assert.match(again, /cache +roll back .* it was not replaced, and is not healthy$/m);
    assert.match(again, /FAILED: Container cache-of-\S+ was not healthy after 5/);
  });

  test("if compose is killed while the engine stops the old container, that one is started again", async () => {
    await slow("1");
    const bin = join(project.directory, "bin");
    await mkdir(bin);
    const docker = (await promisify(execFile)("which", ["docker"], { env })).stdout.trim();
    const isStopping = `${docker} logs cache-of-${project.name} 2>&1 | grep -q "asked to stop"`;
    const upKilled = `setsid ${docker} "$@" & until ${isStopping}; do sleep 0.1; done; kill -KILL -- -$!; exit 1`;
    const script = `#!/bin/sh\ncase " $* " in *" up "*) ${upKilled};; esac\nexec ${docker} "$@"\n`;
    writeScript(join(bin, "docker"), script);
    const output = await outputOf(project.rollOut({ env: { PATH: `${bin}:${env.PATH}` } }), 1);
    assert.match(output, /cache +roll back .* the old version runs again; cache was away for \d+(\.\d)? s$/m);
    assert.equal(await answer(), "1 hello anonymous named");
  });

  test("an interrupted roll-out of which no new container has started leaves the old one running", async () => {
    await slow("1");
    const rollout = project.spawnRollout();
    const ended = endOf(rollout);
    const log = () => project.docker("logs", `cache-of-${project.name}`);
    await until("the engine stops it", async () => (await log()).includes("asked to stop"));
    rollout.kill("SIGTERM");
    const { code, output } = await ended;
    assert.notEqual(code, 0, output);
    assert.match(output, /cache +roll back .* the old version runs again; cache was away for/);
    assert.equal((await project.containers("cache")).length, 1);
    await until("it answers", () => answer().catch(() => null));
    assert.equal(await answer(), "1 hello anonymous named");
  });

  /** Serves `version`, which takes seconds to end, and writes another one. */
  async function slow(version: string): Promise<void> {
    const more = { stop_grace_period: "20s", environment: { GREETING: "hello", MS_TO_END: "3000" } };
    await serving(version, more);
    await compose("2", more);
  }

  function image(version: string): string {
    return `${project.name}-cache:${version}`;
  }

  async function build(version: string): Promise<void> {
    const directory = join(project.directory, "cache");
    const text = `FROM node:24-trixie-slim\nLABEL com.docker.compose.project=${project.name}\nENV VERSION=${version}\nCOPY server.mjs /\nVOLUME /anonymous\nCMD ["node", "/server.mjs"]\n`;
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, "server.mjs"), cacheServer);
    await writeFile(join(directory, "Dockerfile"), text);
    await project.docker("build", "--quiet", "--tag", image(version), directory);
  }

  /** Writes the compose file: the service has everything that a recreated container could lose, and `more`. */
  async function compose(version: string, more: Parts = {}): Promise<void> {
    const healthcheck = { interval: "1s", start_period: "20s", start_interval: "200ms" };
    const cache = {
      image: image(version),
      container_name: `cache-of-${project.name}`,
      environment: { GREETING: "hello" },
      ports: [`127.0.0.1:${port}:8080`],
      volumes: ["named:/named", "/unnamed", "./cache:/sources:ro", { type: "tmpfs", target: "/scratch" }],
      networks: { default: { aliases: ["store"] }, back: { aliases: ["data"] } },
      healthcheck: { test: ["CMD", "bash", "-c", cacheCheck], ...healthcheck },
      labels: { "hotpush.healthy-timeout": "5s" },
      restart: "unless-stopped",
      mem_limit: "256m",
      ...more,
    };
    const file = { services: { cache }, volumes: { named: {} }, networks: { back: {} } };
    await writeFile(join(project.directory, "compose.yaml"), JSON.stringify(file));
  }

  /** Recreates `version`, with a note in each of its volumes. */
  async function serving(version: string, more: Parts = {}): Promise<void> {
    await project.docker("compose", "down", "--volumes", "--remove-orphans");
    await compose(version, more);
    await outputOf(project.rollOut());
    const note = "echo anonymous > /anonymous/note; echo named > /named/note";
    await project.docker("compose", "exec", "--no-TTY", "cache", "sh", "-c", note);
  }

  async function answer(): Promise<string> {
    const response = await fetch(`http://127.0.0.1:${port}`, { headers: { connection: "close" } });
    return response.text();
  }

  /** The configuration and image of its container, without the values that differ for each container. */
  async function made(): Promise<readonly string[]> {
    const mounts = "{{range .Mounts}}\n{{.Destination}} {{.Type}} {{.Name}} {{.RW}}{{end}}";
    const aliases = "{{range $e.Aliases}}\n{{$n}} {{.}}{{end}}";
    const networks = `{{range $n, $e := .NetworkSettings.Networks}}\n{{$n}} {{json $e.IPAMConfig}}${aliases}{{end}}`;
    const format = `{{.Name}} {{.Image}}\n{{json .Config}}\n{{json .HostConfig}}${mounts}${networks}`;
    const told = await project.docker("inspect", "--format", format, `cache-of-${project.name}`);
    return told
      .replace(/"(Hostname":"[0-9a-f]{12}"|Mounts":\[.*?\]),/g, "")
      .split("\n")
      .sort();
  }
});
