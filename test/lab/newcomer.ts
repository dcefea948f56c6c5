import "../harness/environment.ts";
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseEnv } from "node:util";
import {
  newServerStatePath,
  projectNetwork,
  serverComposeProject,
  serverFilesAt,
  serverStateAt,
} from "../../src/config/server.ts";
import { sendHttp } from "../../src/platform/http.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { launcher } from "../harness/hotpush.ts";
import { freePort } from "../harness/listen.ts";
import { commitAndPush, git } from "./git-remote.ts";
import { dockerIn, type Ending, endOf, removeFromEngine, spawnHotpush } from "./project.ts";

const root = join(import.meta.dirname, "../..");

/** The commands in the first block of the README after a text in it, by default those that set a project up. */
export async function readmeCommands(after = "## Set it up"): Promise<readonly string[]> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const from = readme.indexOf(after);
  assert.notEqual(from, -1, `README.md does not say: ${after}`);
  const block = /```sh\n(.*?)```/s.exec(readme.slice(from))?.[1] ?? "";
  return block.split("\n").filter((line) => line.trim() !== "");
}

interface Form {
  readonly payloadUrl: string;
  readonly secret: string;
}

/** The values that a person copies from the printed form to the git host. */
export function readForm(printed: string): Form {
  const [, secret = ""] = /^ +Secret +([0-9a-f]{64})\r?$/m.exec(printed) ?? [];
  assert.notEqual(secret, "", printed);
  const [, shown = ""] = /^ +Payload URL +(\S.*?)\r?$/m.exec(printed) ?? [];
  const payloadUrl = shown.replace("<this server>", "127.0.0.1");
  return { payloadUrl, secret };
}

/** A project in its own checkout, with its own remote, set up by `init`. */
export interface Newcomer {
  readonly host: string;
  readonly checkout: string;
  readonly env: NodeJS.ProcessEnv;
  readonly initTookMs: number;
  /** Pushes a version as a developer, and delivers that as a git host does. @returns the number of its deployment */
  readonly push: (version: string) => Promise<number>;
  /** The version that answers. */
  readonly version: () => Promise<string>;
}

/** By name, as in a compose file. */
type OtherServices = Readonly<Record<string, object>>;

/** A machine with nothing but an engine, on which somebody sets up projects one after the other. */
export type NewMachine = Awaited<ReturnType<typeof makeNewMachine>>;

export async function makeNewMachine(labEnv: NodeJS.ProcessEnv) {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-machine-"));
  const files = serverFilesAt(join(directory, "machine"));
  const env = await newServerEnv(labEnv, files.path);
  const origin = `http://127.0.0.1:${env.HTTP_PORT}`;
  const projects: string[] = [];

  /** @param served by Caddy, beside `web`; `others` are not, but one of them may be another `web` */
  async function setUp(
    name: string,
    served: OtherServices = {},
    others: OtherServices = {},
  ): Promise<Newcomer> {
    const checkout = join(directory, "checkouts", name);
    const services = { web: webService("8080"), ...served, ...others };
    const developer = await makeRepository(join(directory, "git"), checkout, { name, services });
    const host = `${name}.test`;
    const docker = dockerIn(checkout, env);
    projects.push(name);
    const startedMs = performance.now();
    const { code, output } = await init(checkout, host, Object.keys(served));
    const initTookMs = performance.now() - startedMs;
    assert.equal(code, 0, output);
    await docker("compose", "up", "--detach", "--wait");
    const settings = parseEnv(await readFile(join(files.projectsPath, `${name}.env`), "utf8"));
    return {
      host,
      initTookMs,
      checkout,
      env,
      async push(version) {
        const commit = await commitVersion(developer, version);
        const delivery = githubPush(
          { after: commit, repository: settings.REPOSITORY ?? "octo/app" },
          settings.WEBHOOK_SECRET,
        );
        const { status, json } = await deliver(origin, delivery, `/webhook/${name}`);
        assert.equal(status, 202, JSON.stringify(json));
        return json.deployment?.id ?? 0;
      },
      async version() {
        const { status, body } = await sendHttp(new URL(origin), { headers: { host } });
        assert.equal(status, 200, body.toString());
        return body.toString().split(" ")[0] ?? "";
      },
    };
  }

  function init(checkout: string, host: string, served: readonly string[]): Promise<Ending> {
    const places = served.flatMap((service) => ["--at", `${service}:8080=${service}.${host}`]);
    const answers = ["--host", "github", "--url", `http://${host}`, "--at", `web=${host}`, ...places];
    return endOf(spawnHotpush(checkout, env, ["init", "--yes", ...answers]));
  }

  async function remove(): Promise<void> {
    const docker = dockerIn(directory, env);
    for (const name of [serverComposeProject, ...projects]) await removeFromEngine(docker, name);
    for (const name of projects) await docker("network", "rm", projectNetwork(name)).catch(() => {});
    await rm(directory, { recursive: true, force: true });
  }

  const state = serverStateAt(newServerStatePath(env));
  return { origin, files, state, setUp, remove };
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
  { name, services }: { readonly name: string; readonly services: OtherServices },
): Promise<string> {
  const bare = join(directory, "octo", `${name}.git`);
  const clone = join(directory, name);
  await mkdir(join(directory, "octo"), { recursive: true });
  await git("/", "init", "--quiet", "--bare", "--initial-branch=main", bare);
  await git("/", "clone", "--quiet", bare, clone);
  await cp(join(import.meta.dirname, "app"), join(clone, "app"), { recursive: true });
  await writeFile(join(clone, "compose.yaml"), JSON.stringify({ services }));
  await commitVersion(clone, "first");
  await git("/", "clone", "--quiet", bare, checkout);
  return clone;
}

/** A service of the lab's app that publishes a port. */
export function webService(port: string): object {
  return {
    build: "app",
    restart: "unless-stopped",
    ports: [`${port}:8080`],
    healthcheck: {
      test: ["CMD", "./healthcheck.sh"],
      interval: "5s",
      start_period: "30s",
      start_interval: "500ms",
    },
  };
}

async function commitVersion(clone: string, version: string): Promise<string> {
  const behaviour = { version, behaviour: "dies-on-sigterm" };
  await writeFile(join(clone, "app", "behaviour.json"), JSON.stringify(behaviour));
  return commitAndPush(clone);
}
