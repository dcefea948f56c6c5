import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { githubPush } from "./delivery.ts";
import { untilAnswering } from "./hotpush.ts";
import { makeMachine, type RunningRole } from "./roles.ts";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

/** A checkout whose script runs `text`. */
export function makeCheckout(scope: Scope, text = "true"): string {
  const path = temporaryDirectory(scope);
  writeScript(join(path, "deploy.sh"), `#!/bin/sh\n${text}\n`);
  return path;
}

/** Sends a push to the webhook of a project. */
export async function pushTo(service: RunningRole, project: string, delivery = githubPush()) {
  const response = await fetch(service.urlOf(project), { method: "POST", ...delivery });
  return { status: response.status, body: (await response.json()) as Record<string, never> };
}

/** A script that runs until the file `go` is in its checkout. */
export const waitsForGo = "until [ -e go ]; do sleep 0.05; done";

/** Starts a service with a project for each of the scripts, in one process, and waits until it answers commands. */
export async function startProjects(scope: Scope, scripts: Readonly<Record<string, string>>, env = {}) {
  const machine = makeMachine(scope);
  const paths = new Map(Object.entries(scripts).map(([name, text]) => [name, makeCheckout(scope, text)]));
  for (const [name, path] of paths) machine.addProject(name, path);
  const service = await machine.start("all", env);
  await untilAnswering(service);
  const go = (name: string) => writeFileSync(join(paths.get(name) ?? "", "go"), "");
  return { machine, service, paths, go };
}
