import "../harness/environment.ts";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { parseEnv, promisify } from "node:util";
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
import { dockerIn, type Ending, endOf, removeFromEngine, spawnHotpush } from "./project.ts";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);

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

/** A bare repository with examples/compose's app and a typical compose file. */
export async function makeRemote(directory: string, port: string): Promise<void> {
  const seed = join(directory, "developer");
  await cp(join(root, "examples/compose/app"), join(seed, "app"), { recursive: true });
  const compose = `services:\n  app:\n    build: app\n    restart: unless-stopped\n    ports:\n      - "${port}:8080"\n`;
  await writeFile(join(seed, "compose.yaml"), compose);
  await git(directory, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git");
  await git(seed, "init", "--quiet", "--initial-branch=main");
  await git(seed, "remote", "add", "origin", "../remote.git");
  await commitAndPush(seed, "Version 1");
}

async function commitAndPush(clone: string, message: string): Promise<string> {
  await git(clone, "add", "--all");
  await git(clone, "commit", "--quiet", "--message", message);
  await git(clone, "push", "--quiet", "origin", "main");
  return git(clone, "rev-parse", "HEAD");
}

export async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
  return (await run("git", ["-C", directory, ...ada, ...args])).stdout.trim();
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
  const http = await freePort();
  const https = await freePort();
  const origin = `http://127.0.0.1:${http}`;
  const files = serverFilesAt(join(directory, "machine"));
  const env = {
    ...labEnv,
    SERVER_PATH: files.path,
    HTTP_PORT: String(http),
    HTTPS_PORT: String(https),
    PATH: `${dirname(launcher)}:${labEnv.PATH}`,
  };
  const projects: string[] = [];

  /** @param served by Caddy, beside `web`; `others` are not, but one of them may be another `web` */
  async function setUp(
    name: string,
    served: OtherServices = {},
    others: OtherServices = {},
  ): Promise<Newcomer> {
    const checkout = join(directory, "checkouts", name);
    const developer = await makeRepository(join(directory, "git"), checkout, {
      name,
      others: { ...served, ...others },
    });
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

/** Makes a remote in `directory`, with a clone of a developer there, and the checkout of a server. @returns the clone */
async function makeRepository(
  directory: string,
  checkout: string,
  { name, others }: { readonly name: string; readonly others: OtherServices },
): Promise<string> {
  const bare = join(directory, "octo", `${name}.git`);
  const clone = join(directory, name);
  await mkdir(join(directory, "octo"), { recursive: true });
  await git("/", "init", "--quiet", "--bare", "--initial-branch=main", bare);
  await git("/", "clone", "--quiet", bare, clone);
  await cp(join(import.meta.dirname, "app"), join(clone, "app"), { recursive: true });
  await writeFile(join(clone, "compose.yaml"), JSON.stringify({ services: { web: service, ...others } }));
  await commitVersion(clone, "first");
  await git("/", "clone", "--quiet", bare, checkout);
  return clone;
}

const service = {
  build: "app",
  restart: "unless-stopped",
  ports: ["8080:8080"],
  healthcheck: {
    test: ["CMD", "./healthcheck.sh"],
    interval: "5s",
    start_period: "30s",
    start_interval: "500ms",
  },
};

async function commitVersion(clone: string, version: string): Promise<string> {
  const behaviour = { version, behaviour: "dies-on-sigterm" };
  await writeFile(join(clone, "app", "behaviour.json"), JSON.stringify(behaviour));
  await git(clone, "add", "--all");
  await git(clone, "commit", "--quiet", "--message", `Version ${version}`);
  await git(clone, "push", "--quiet", "origin", "HEAD:main");
  return git(clone, "rev-parse", "HEAD");
}
