import "../harness/environment.ts";
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import type { WholeStatusJson } from "../../src/calls/shapes.ts";
import {
  newServerStatePath,
  projectNetwork,
  serverComposeProject,
  serverFilesAt,
  serverNetwork,
  serverStateAt,
} from "../../src/config/server.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { launcher } from "../harness/hotpush.ts";
import { freePort } from "../harness/listen.ts";
import { git } from "../harness/repository.ts";
import { until } from "../harness/until.ts";
import { commitAndPush } from "./git-remote.ts";
import { dockerIn, endOf, outputOf, removeFromEngine, spawnHotpush, writeVersion } from "./project.ts";

/** By name, as in a compose file. */
type Services = Readonly<Record<string, object>>;

/** An engine, on which somebody sets up projects one after the other with `init`. An engine has only one server. */
export type Server = Awaited<ReturnType<typeof makeServer>>;

/** A project of the server: a checkout of its own remote, at an address of its own. */
export type ServedProject = Awaited<ReturnType<Server["setUp"]>>;

export async function makeServer(labEnv: NodeJS.ProcessEnv) {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-machine-"));
  const files = serverFilesAt(join(directory, "machine"));
  const env = await newServerEnv(labEnv, files.path);
  const state = serverStateAt(newServerStatePath(env));
  const docker = dockerIn(directory, env);
  const compose = (...args: readonly string[]) => dockerIn(files.path, env)("compose", ...args);
  const names: string[] = [];

  /** @param served by Caddy, beside `web`; `others` are not, but one of them may be another `web` */
  async function setUp(name: string, served: Services = {}, others: Services = {}) {
    const checkout = join(directory, "checkouts", name);
    const services = { web: webService("8080"), ...served, ...others };
    const developer = await makeRepository(join(directory, "git"), checkout, { name, services });
    // Each has an address of the loopback network, because names would have to be resolved.
    const host = `127.0.0.${names.push(name) + 1}`;
    const origin = `http://${host}:${env.HTTP_PORT}`;
    const start = (...args: readonly string[]) => spawnHotpush(checkout, env, args);
    const projectCompose = (...args: readonly string[]) => dockerIn(checkout, env)("compose", ...args);
    const sites = Object.keys(served).map((service) => `${service}:8080=${service}.${name}.test`);
    const places = [`web=${host}`, ...sites].flatMap((place) => ["--at", place]);
    await outputOf(endOf(start("init", "--yes", "--host", "github", "--url", origin, ...places)));
    await projectCompose("up", "--detach", "--wait");
    const version = async () => {
      const response = await fetch(origin, { headers: { connection: "close" } });
      assert.equal(response.status, 200);
      return (await response.text()).split(" ")[0] ?? "";
    };
    const settings = parseEnv(readFileSync(join(files.projectsPath, `${name}.env`), "utf8"));
    return {
      name,
      origin,
      checkout,
      env,
      secret: settings.WEBHOOK_SECRET ?? "",
      siteFile: join(files.sitesPath, `${name}.caddy`),
      liveFile: join(state.live, name, "web"),
      compose: projectCompose,
      /** Starts a command of Hotpush in the checkout. */
      start,
      hotpush: (...args: readonly string[]) => endOf(start(...args)),
      /** Pushes a version as a developer, and delivers that as a git host does. @returns the number of its deployment */
      async push(version: string) {
        const { REPOSITORY: repository = "octo/app", WEBHOOK_SECRET, WEBHOOK_URL = "" } = settings;
        const delivery = githubPush(
          { after: await commitVersion(developer, version), repository },
          WEBHOOK_SECRET,
        );
        const { status, json } = await deliver(origin, delivery, new URL(WEBHOOK_URL).pathname);
        assert.equal(status, 202, JSON.stringify(json));
        return json.deployment?.id ?? 0;
      },
      /** The version that answers through Caddy. */
      version,
      untilServed: () => until(`an answer at ${origin}`, () => version().catch(() => null)),
    };
  }

  const caddyNetworks = async () => {
    const format = '{{range $name, $_ := .NetworkSettings.Networks}}{{$name}}{{"\\n"}}{{end}}';
    return (await docker("inspect", "hotpush-caddy-1", "--format", format)).split("\n").sort().join();
  };
  return {
    /** The address of Caddy. */
    origin: `http://127.0.0.1:${env.HTTP_PORT}`,
    files,
    state,
    docker,
    /** In the directory of the server. */
    compose,
    setUp,
    /** Waits until Caddy is on the networks of just these projects. */
    async untilJoined(projects: readonly string[], withinMs?: number) {
      const wanted = [serverNetwork, ...["front", ...projects].map(projectNetwork)].sort().join();
      const isJoined = async () => (await caddyNetworks().catch(() => "")) === wanted;
      await until(`Caddy on the networks ${wanted}`, isJoined, withinMs);
    },
    async status() {
      const printed = await compose("exec", "--no-tty", "run", "hotpush", "status", "--json").catch(
        (error: { readonly stdout: string }) => error.stdout,
      );
      return JSON.parse(printed) as WholeStatusJson;
    },
    async remove() {
      for (const name of [serverComposeProject, ...names]) await removeFromEngine(docker, name);
      const ids = await docker("network", "ls", "--quiet", "--filter", "label=hotpush.project");
      if (ids !== "") await docker("network", "rm", ...ids.split("\n"));
      await rm(directory, { recursive: true, force: true });
    },
  };
}

/** The variables of a person who sets up a server at `path`, with free ports. */
export async function newServerEnv(labEnv: NodeJS.ProcessEnv, path: string) {
  return {
    ...labEnv,
    SERVER_PATH: path,
    HTTP_PORT: String(await freePort()),
    HTTPS_PORT: String(await freePort()),
    PATH: `${dirname(launcher)}:${labEnv.PATH}`,
  };
}

/** Makes a remote in `directory`, with a clone of a developer there, and the checkout of a server. @returns the clone */
export async function makeRepository(
  directory: string,
  checkout: string,
  { name, services }: { readonly name: string; readonly services: Services },
): Promise<string> {
  const bare = join(directory, "octo", `${name}.git`);
  const clone = join(directory, name);
  await mkdir(join(directory, "octo"), { recursive: true });
  git("/", "init", "--quiet", "--bare", "--initial-branch=main", bare);
  git("/", "clone", "--quiet", bare, clone);
  await cp(join(import.meta.dirname, "app"), join(clone, "app"), { recursive: true });
  await writeFile(join(clone, "compose.yaml"), JSON.stringify({ services }));
  await commitVersion(clone, "first");
  git("/", "clone", "--quiet", bare, checkout);
  return clone;
}

/** Of the lab's app. Each check costs a fifth of a second of a processor, so it is asked often only at the start. */
export const healthcheck = {
  test: ["CMD", "./healthcheck.sh"],
  interval: "5s",
  start_period: "30s",
  start_interval: "500ms",
};

/** A service of the lab's app that publishes a port. */
export function webService(port: string): object {
  return { build: "app", restart: "unless-stopped", ports: [`${port}:8080`], healthcheck };
}

async function commitVersion(clone: string, version: string): Promise<string> {
  await writeVersion(clone, version, "dies-on-sigterm");
  return commitAndPush(clone);
}
