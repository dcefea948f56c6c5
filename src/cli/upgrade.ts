import type { Command } from "commander";
import { serverCommands, serverServices } from "#config/server";
import { connectEngine, isInContainer } from "#platform/docker/engine";
import { findServer } from "#setup/server";
import type { ServerContext } from "#setup/start";
import {
  copiedFiles,
  type PlannedUpgrade,
  planUpgrade,
  type UpgradeEvents,
  upgradeServer,
  type WentBack,
} from "#setup/upgrade";
import { type CommandContext, isAgreed, newCommand, print, refuse, say } from "./command.ts";
import { printChanges } from "./init.ts";

export const commands = { upgrade: makeUpgradeCommand };

/** `hotpush upgrade`: the server runs the version of the Hotpush that is called. */
function makeUpgradeCommand({ env, finish }: CommandContext): Command {
  const description =
    "Make this server run the version of Hotpush that you call: build its image, update its files, and replace its containers when no deployment runs. No push is lost, and no request of a project fails. If the new version is not healthy, the old one is brought back.";
  return newCommand("upgrade", description, ["hotpush upgrade   shows what would change, and asks"])
    .option("--yes", "do not ask")
    .action(async ({ yes = false }: { readonly yes?: boolean }) => finish(await upgrade(yes, env)));
}

async function upgrade(yes: boolean, env: NodeJS.ProcessEnv) {
  const server = findServer(env);
  if (server === null) return refuse("This server is not set up. Run: hotpush init");
  if (isInContainer()) return refuse("Run this on the machine: here it would replace its own container.");
  const left = new AbortController();
  // It ends the wait for deployments. After that, it would leave the server between two versions.
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) process.on(name, () => left.abort());
  const context = { server, engine: connectEngine(env.DOCKER_HOST), env, signal: left.signal };
  const plan = await planUpgrade(context);
  await printPlan(context, plan);
  if (plan.replaced.length === 0 && plan.files.every(({ state }) => state === "right")) {
    print("Everything is up to date.");
    return 0;
  }
  if (!(yes || (await isAgreed("upgrade this server as shown")))) return 1;
  const wentBack = await upgradeServer(context, plan, events);
  if (wentBack !== null) return refuse(wentBackText(context, wentBack), wentBack.reason);
  print(`This server runs ${plan.image}.`);
  return 0;
}

async function printPlan(context: ServerContext, plan: PlannedUpgrade): Promise<void> {
  print(`Server  ${context.server.files.path}`, `New     ${plan.image}`, "");
  await printChanges(plan.files, context.env);
  const replaced = plan.replaced.join(", ");
  const kept = copiedFiles(plan).map(({ name }) => name);
  const notes = [
    ...(kept.length === 0
      ? []
      : [`Your present ${kept.join(" and ")} will be kept beside the new text, as *.before.`]),
    ...(replaced === "" ? [] : [`Containers that are replaced: ${replaced}.`]),
    ...(plan.replaced.includes(serverServices.caddy)
      ? ["Caddy is one of them: for a second or two, no project of this machine can be reached."]
      : []),
  ];
  for (const note of notes) say(`- ${note}`, "  ");
}

const events: UpgradeEvents = {
  onWaiting(running) {
    const names = running.map(({ id, project }) => `${id} of ${project}`).join(", ");
    say(`Waiting for deployment ${names}; no other starts. Ctrl-C changes nothing.`);
  },
  onReplaced: (services) => print(`Replaced ${services.join(" and ")}.`),
};

function wentBackText({ server }: ServerContext, { service, unrecovered }: WentBack): string {
  const failed = `The new ${service} is not healthy`;
  if (unrecovered === null) return `${failed}, so this server runs the old version again. Docker says:`;
  return `${failed}. The files are the old ones again, but ${unrecovered} did not start with them either. See: ${serverCommands(server.files).logsOf(unrecovered)}
Docker says:`;
}
