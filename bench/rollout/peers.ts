import { execFile } from "node:child_process";
import { cp, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { callRun, followRun } from "../../src/calls/client.ts";
import { deliver, githubPush } from "../../test/harness/delivery.ts";
import { startService } from "../../test/harness/service.ts";
import { type Scope, temporaryDirectory } from "../../test/harness/temporary.ts";
import { until } from "../../test/harness/until.ts";
import type { Behaviour } from "../../test/lab/project.ts";
import { startAdnanhWebhook } from "../peers/adnanh-webhook.ts";
import { makeServicesProject } from "./services.ts";

const run = promisify(execFile);

/** A way from a push to the new version, as people use it, for a project of some services. */
export interface PushedProject {
  readonly services: readonly string[];
  readonly originOf: (service: string) => string;
  readonly isLive: (version: string) => Promise<boolean>;
  /** Commits and pushes a version of all services. Nothing is deployed yet. */
  readonly commit: (version: string, behaviour: Behaviour) => Promise<void>;
  /** Sends the delivery of the last push, as a git host does. */
  readonly send: () => Promise<void>;
  /** Waits until what the push started has ended. */
  readonly untilDone: () => Promise<unknown>;
  /** What went on when, in milliseconds since 1970: lines of the script, and what the service recorded. */
  readonly timeline?: () => Promise<readonly (readonly [atMs: number, what: string])[]>;
}

export interface Peer {
  readonly name: string;
  readonly start: (scope: Scope, env: NodeJS.ProcessEnv, services: number) => Promise<PushedProject>;
}

const deployWithinMs = 180_000;
/** What compose needs of the environment. */
const variables = ["COMPOSE_PROJECT_NAME", "PORT", "DOCKER_HOST", "DOCKER_CONFIG"];

export const hotpush: Peer = {
  name: "Hotpush",
  async start(scope, env, services) {
    const { project, pushed, head } = await makePushed(scope, env, services, "by live file", true);
    const statePath = join(temporaryDirectory(scope), "state");
    const service = await startService(scope, {
      repoPath: project.directory,
      env: { ...project.env, STATE_PATH: statePath, DEPLOY_ENV: variables.join(" ") },
      statePath,
    });
    const last = async () => {
      const answer = await callRun(service.statePath, "history", { limit: 1 });
      return answer.deployments[0];
    };
    let sent = "";
    return {
      ...pushed,
      async send() {
        sent = await head();
        const { status, json } = await deliver(service.url, githubPush({ after: sent }));
        if (status !== 202) throw new Error(JSON.stringify(json));
      },
      untilDone: () =>
        until(
          "the end of the deployment",
          async () =>
            (await last())?.commit === sent &&
            !["queued", "running"].includes((await last())?.state ?? "queued"),
          deployWithinMs,
        ),
      async timeline() {
        const { id, createdAt, startedAt, liveAt, finishedAt } = (await last()) ?? {};
        const recorded = Object.entries({ createdAt, startedAt, liveAt, finishedAt });
        const lines: (readonly [number, string])[] = [];
        const { signal } = new AbortController();
        const asked = { id: id ?? "latest", follow: "false" } as const;
        const events = followRun(service.statePath, "events", asked, { signal });
        for await (const event of events) {
          if (event.event !== "line") continue;
          const { line, printedAt } = event;
          if (/^==> |^ {2}.{14} (?!build|pull)\w+ .* m?s /.test(line) && printedAt !== null)
            lines.push([Date.parse(printedAt), line.trim()]);
        }
        return [...recorded.map(([what, at]) => [Date.parse(at ?? ""), what] as const), ...lines];
      },
    };
  },
};

export const composeByWebhook: Peer = scripted("adnanh/webhook, docker compose up -d", () => [
  "docker compose up --detach --build",
]);

/** @param script the path of https://github.com/wowu/docker-rollout */
export function dockerRollout(script: string): Peer {
  return scripted("adnanh/webhook, docker-rollout", (services) => [
    "docker compose build",
    ...services.map((service) => `bash ${script} rollout --timeout 20 ${service}`),
  ]);
}

/** adnanh/webhook, which runs a script. */
function scripted(name: string, lines: (services: readonly string[]) => readonly string[]): Peer {
  return {
    name,
    async start(scope, env, count) {
      const { project, pushed } = await makePushed(scope, env, count, "by name");
      const done = join(temporaryDirectory(scope), "done");
      const script = [
        "#!/bin/bash",
        ...[...variables, "PATH"].map((variable) => `export ${variable}='${project.env[variable] ?? ""}'`),
        `cd '${project.directory}' || exit 1`,
        ["git pull --quiet", ...lines(project.services)].join(" && "),
        `touch '${done}'`,
      ];
      const receiver = await startAdnanhWebhook(scope, `${script.join("\n")}\n`);
      return {
        ...pushed,
        async send() {
          await rm(done, { force: true });
          const { headers, body } = githubPush();
          const { status } = await fetch(receiver.hookUrl, { method: "POST", headers, body: String(body) });
          if (status !== 200) throw new Error(`adnanh/webhook answered ${status}`);
        },
        untilDone: () =>
          until(
            "the end of the script",
            () =>
              readFile(done).then(
                () => true,
                () => false,
              ),
            deployWithinMs,
          ),
      };
    },
  };
}

/** A project with a remote, a checkout on the server, and a developer's clone. Its first version runs. */
async function makePushed(
  scope: Scope,
  env: NodeJS.ProcessEnv,
  count: number,
  proxied: "by live file" | "by name",
  isGuarded = false,
) {
  const project = await makeServicesProject(env, count, proxied, isGuarded);
  scope.after(() => project.remove());
  await project.writeAll("v0");
  const remote = join(temporaryDirectory(scope), "remote.git");
  const clone = join(temporaryDirectory(scope), "dev");
  const git = async (directory: string, ...args: readonly string[]) =>
    (
      await run("git", ["-c", "user.name=dev", "-c", "user.email=dev@example.org", ...args], {
        cwd: directory,
      })
    ).stdout.trim();
  await cp(join(import.meta.dirname, "../../examples/deploy.sh"), join(project.directory, "deploy.sh"));
  await writeFile(join(project.directory, ".gitignore"), "state\n");
  await git("/", "init", "--quiet", "--bare", "--initial-branch=main", remote);
  await git(project.directory, "init", "--quiet", "--initial-branch=main");
  await git(project.directory, "add", "--all");
  await git(project.directory, "commit", "--quiet", "--message", "v0");
  await git(project.directory, "remote", "add", "origin", remote);
  await git(project.directory, "push", "--quiet", "--set-upstream", "origin", "main");
  await git("/", "clone", "--quiet", remote, clone);
  await project.docker("compose", "up", "--detach", "--build", "--wait");
  const commit: PushedProject["commit"] = async (version, behaviour) => {
    for (const service of project.services)
      await writeFile(
        join(clone, service, "behaviour.json"),
        JSON.stringify({ version, behaviour, service }),
      );
    await git(clone, "commit", "--quiet", "--all", "--message", version);
    await git(clone, "push", "--quiet");
  };
  const { services, isLive, origin } = project;
  const pushed = { services, isLive, commit, originOf: (service: string) => `${origin}/${service}` };
  return { project, pushed, head: () => git(clone, "rev-parse", "HEAD") };
}
