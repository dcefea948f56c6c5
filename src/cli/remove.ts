import type { Command } from "commander";
import { projectNetwork } from "#config/server";
import { connectEngine } from "#platform/docker/engine";
import { confirm } from "#platform/terminal";
import { connect, findConnection } from "#setup/connect";
import { type PlannedRemoval, planRemoval, removeProject } from "#setup/remove";
import { findServer, removedFiles, type Server } from "#setup/server";
import { type CommandContext, isAgreed, newCommand, print, projectOption, refuse, say } from "./command.ts";
import { connectScreen } from "./connect.ts";

export const commands = { remove: makeRemoveCommand };

interface RemoveOptions {
  readonly project?: string;
  readonly yes?: boolean;
}

/** `hotpush remove`: the server no longer serves a project; what the project itself is stays. */
function makeRemoveCommand({ env, finish }: CommandContext): Command {
  const description =
    "Take a project off this machine's Caddy and Hotpush. Its checkout, containers, volumes and history stay. Its settings and secrets are kept aside; hotpush init brings it back, with the same webhook secret.";
  return newCommand("remove", description, ["hotpush remove   the project of this checkout"])
    .addOption(projectOption())
    .option("--yes", "do not ask")
    .action(async (options: RemoveOptions) => finish(await remove(options, env)));
}

async function remove(
  { project: name, yes = false }: RemoveOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const server = findServer(env);
  if (server === null) return refuse("This server is not set up, so there is nothing to remove.");
  const plan = await planRemoval(server, name);
  printPlan(server, plan);
  if (!(yes || (await isAgreed(`remove ${plan.project.name} as shown`)))) return 1;
  // Before, because its address and secret are still there.
  const isDisconnected = !yes && (await offerDisconnecting(plan.project.name, env));
  const { isNetworkLeft } = await removeProject(server, connectEngine(env.DOCKER_HOST), plan, () =>
    print("Waiting for running deployments."),
  );
  printEnding(plan, isNetworkLeft);
  print(
    `${isDisconnected ? "" : "Delete the webhook at the git host. "}To bring the project back: hotpush init`,
  );
  return 0;
}

/** @returns whether webhook and deploy key are gone */
async function offerDisconnecting(project: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const connection = await findConnection({ project }, env).catch(() => null);
  if (!connection?.repository || !connection.isHostNamed) return false;
  const { host, pathname } = connection.repository.url;
  if (!(await confirm(`Also delete the webhook and the deploy key of ${host}${pathname}? It takes a token.`)))
    return false;
  return (await connect({ project, remove: true }, env, connectScreen(env))) === 0;
}

function printPlan(server: Server, { project, moved, removed, changed }: PlannedRemoval): void {
  const { name, env } = project;
  const lines = [
    ...moved.map((path) => `moved     ${path}`),
    ...removed.map((path) => `removed   ${path}`),
    ...(changed?.state === "changed" ? [`changed   ${changed.path}`] : []),
  ];
  print(`Project   ${name}, in ${env.REPO_PATH}`, `Server    ${server.files.path}`, "", ...lines, "");
  say(
    `- ${name} gets no more pushes, what waits is cancelled, and Caddy no longer serves it. The moved files have its webhook secret and the secrets of deploy.sh: they are kept in ${removedFiles(server.files).path}.`,
    "  ",
  );
  print("- The checkout, deploy.sh, containers, volumes, images and the history stay.", "");
}

function printEnding({ project: { name, env } }: PlannedRemoval, isNetworkLeft: boolean): void {
  const checkout = env.REPO_PATH ?? "";
  print(
    `${name} is removed from this machine's Caddy and Hotpush.`,
    "",
    "Its containers run on, without published ports. To publish them again:",
    `  cd ${checkout} && docker compose up --detach`,
    "Or to stop the app:",
    `  cd ${checkout} && docker compose down`,
    ...(isNetworkLeft
      ? ["After either, nothing uses its network any more:", `  docker network rm ${projectNetwork(name)}`]
      : []),
  );
}
