import "../harness/environment.ts";
import assert from "node:assert/strict";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
import { freePort } from "../harness/listen.ts";
import { git } from "./newcomer.ts";
import { dockerIn, type Ending, endOf, removeFromEngine } from "./project.ts";
import { spawnHotpush } from "./spawn-hotpush.ts";

/** A machine with nothing but an engine, on which somebody sets up projects one after the other. */
export interface NewMachine {
  /** Where Caddy answers for all of them. */
  readonly origin: string;
  /** STATE_PATH of `run`. */
  readonly runStatePath: string;
  /** Sets a project up, as the README says. It has a service `web`, and `others`. */
  readonly setUp: (name: string, others?: OtherServices) => Promise<Newcomer>;
  readonly remove: () => Promise<void>;
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
export type OtherServices = Readonly<Record<string, object>>;

export async function makeNewMachine(labEnv: NodeJS.ProcessEnv): Promise<NewMachine> {
  const directory = await mkdtemp(join(tmpdir(), "hotpush-machine-"));
  const [http, https] = [await freePort(), await freePort()];
  const origin = `http://127.0.0.1:${http}`;
  const files = serverFilesAt(join(directory, "machine"));
  const env = {
    ...labEnv,
    ...{ SERVER_PATH: files.path, HTTP_PORT: String(http), HTTPS_PORT: String(https) },
  };
  const projects: string[] = [];

  async function setUp(name: string, others: OtherServices = {}): Promise<Newcomer> {
    const checkout = join(directory, "checkouts", name);
    const developer = await makeRepository(join(directory, "git"), checkout, { name, others });
    const host = `${name}.test`;
    const docker = dockerIn(checkout, env);
    projects.push(name);
    const startedMs = performance.now();
    const { code, output } = await init(checkout, host);
    const initTookMs = performance.now() - startedMs;
    assert.equal(code, 0, output);
    await docker("compose", "up", "--detach", "--wait");
    const settings = parseEnv(await readFile(join(files.projectsPath, `${name}.env`), "utf8"));
    return {
      ...{ host, initTookMs, checkout, env },
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

  function init(checkout: string, host: string): Promise<Ending> {
    const answers = ["--host", "github", "--url", `http://${host}`, "--at", `web=${host}`];
    return endOf(spawnHotpush(checkout, env, ["init", "--yes", ...answers]));
  }

  async function remove(): Promise<void> {
    const docker = dockerIn(directory, env);
    for (const name of [serverComposeProject, ...projects]) await removeFromEngine(docker, name);
    for (const name of projects) await docker("network", "rm", projectNetwork(name)).catch(() => {});
    await rm(directory, { recursive: true, force: true });
  }

  const runStatePath = serverStateAt(newServerStatePath(env, true)).run;
  return { origin, runStatePath, setUp, remove };
}

/** Makes a remote in `directory`, with a clone of a developer there, and the checkout of a server. @returns the clone */
async function makeRepository(
  directory: string,
  checkout: string,
  { name, others }: { readonly name: string; readonly others: OtherServices },
): Promise<string> {
  const [bare, clone] = [join(directory, "octo", `${name}.git`), join(directory, name)];
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
