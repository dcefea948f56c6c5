import { constants, existsSync } from "node:fs";
import type { Command } from "commander";
import { machineServices, projectNetwork, serverCommands } from "../config/machine-part.ts";
import { applyChange, type CheckoutChange, planCheckoutRemoval } from "../init/on-machine/plan-removal.ts";
import { connectEngine } from "../platform/docker/engine.ts";
import { isAllowed } from "../platform/files.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { askProject, filesOfProject, isRunning, type RemovalEnding, removeProject } from "../setup/remove.ts";
import {
  chooseProject,
  findMachinePart,
  findMachineProject,
  findProjectAround,
  type MachinePart,
  type MachineProject,
  removedFiles,
} from "../setup/server.ts";
import { portsOfProject } from "../setup/sites.ts";
import { type CommandContext, newCommand, print, projectOption, refuse } from "./command.ts";
import { canAsk, confirm } from "./init-questions.ts";

interface RemoveOptions {
  readonly project?: string;
  readonly yes?: boolean;
}

/** `hotpush remove`: the machine part no longer serves a project; what the project itself is stays. */
export function makeRemoveCommand({ env, finish }: CommandContext): Command {
  const description =
    "Take a project off this machine's Caddy and Hotpush. Its checkout, containers, volumes and history stay. Its settings and secrets are kept aside, and hotpush init brings it back.";
  return newCommand("remove", description, [
    "hotpush remove                   the project of this checkout",
    "hotpush remove --project shop    another one",
  ])
    .addOption(projectOption())
    .option("--yes", "do not ask")
    .action(async (options: RemoveOptions) => finish(await remove(options, env)));
}

async function remove(
  { project: name, yes = false }: RemoveOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const part = findMachinePart(env);
  if (part === null)
    return refuse("There is no machine part on this machine, so there is nothing to remove.");
  const project = findProject(part, name);
  if (project === null)
    return refuse(
      "This is no checkout of a project of the machine part. Name one: hotpush remove --project <name>",
    );
  const refusal = await whyNot(part, project);
  if (refusal !== null) return refuse(refusal);
  const checkout = project.env.REPO_PATH ?? "";
  const changes = planCheckoutRemoval(checkout);
  const ports = portsOfProject(part.files.sitesPath, project.name);
  printPlan(part, project, changes, ports);
  if (!(yes || (await isAgreed(project.name)))) return 1;
  const machine = { part, engine: connectEngine(env.DOCKER_HOST), env, signal: new AbortController().signal };
  const ending = await removeProject(machine, project.name, ports, {
    onWaiting: (isOther) =>
      print(
        isOther ? "Waiting for the running deployments." : "Waiting for a deployment that has just begun.",
      ),
    onUnserved: () => changes.forEach(applyChange),
  });
  printEnding(part, project, ending);
  return ending.caddyFailure === null ? 0 : 1;
}

/** One whose removal was interrupted is among the removed ones already, and its site is still there. */
function findProject(part: MachinePart, name: string | undefined): MachineProject | null {
  const find = (among: MachinePart) =>
    name === undefined ? findProjectAround(among, ".") : findMachineProject(among, name);
  const half = find(part) === null ? find({ ...part, files: removedFiles(part.files) }) : null;
  if (half !== null && existsSync(filesOfProject(part, half.name).site.from)) return half;
  return chooseProject(part, ".", name);
}

async function whyNot(
  { files, state, ...part }: MachinePart,
  { name }: MachineProject,
): Promise<string | null> {
  if (!isAllowed(files.projectsPath, constants.W_OK))
    return `Only the owner of ${files.path} may remove projects from the machine part. Run this with sudo.`;
  const known = await askProject({ files, state, ...part }, name);
  if (!isRunning(known)) return null;
  const id = known?.last?.id;
  return `Deployment ${id} of ${name} runs. Wait for its end (hotpush logs -f ${id}) or cancel it (hotpush cancel ${id}), and run this again. Nothing was changed.`;
}

function printPlan(
  part: MachinePart,
  { name, env }: MachineProject,
  changes: readonly CheckoutChange[],
  ports: readonly number[],
): void {
  const { settings, secrets, site } = filesOfProject(part, name);
  const moved = [settings, secrets, site].filter(({ from }) => existsSync(from));
  const rows = [
    ...moved.map(({ from }) => ["moved", from]),
    ...changes.map(({ path, text }) => [text === null ? "removed" : "changed", path]),
  ];
  const lines = rows.map(([what = "", path = ""]) => `${what.padEnd(8)}  ${path}`);
  const aside = `- ${name} gets no more pushes, and Caddy no longer serves it. The moved files have its webhook secret and the secrets of deploy.sh: they are kept in ${removedFiles(part.files).path}.`;
  const stays = "- The checkout, deploy.sh, containers, volumes, images and the history stay.";
  print(`Project   ${name}, in ${env.REPO_PATH}`, `Machine   ${part.files.path}`, "", ...lines, "");
  const recreated = `- Caddy gives up port ${ports.join(" and ")}. For about a second, no project of this server answers.`;
  const notes = [aside, ...(ports.length === 0 ? [] : [recreated]), stays];
  print(...notes.map((text) => wrapFor(process.stdout, text, "  ")), "");
}

async function isAgreed(name: string): Promise<boolean> {
  if (!canAsk()) {
    refuse(`This would remove ${name} as shown. Nothing was changed; to agree: hotpush remove --yes`);
    return false;
  }
  if (await confirm(`Remove ${name} as shown?`)) return true;
  refuse("Nothing was changed.");
  return false;
}

function printEnding(part: MachinePart, { name, env }: MachineProject, ending: RemovalEnding): void {
  const checkout = env.REPO_PATH ?? "";
  print(`${name} is removed from this machine's Caddy and Hotpush.`, ...unfinished(part, name, ending), "");
  print(
    "Its containers run on, without published ports. To publish them again:",
    `  cd ${checkout} && docker compose up --detach`,
    "Or to stop the app:",
    `  cd ${checkout} && docker compose down`,
    ...(ending.isNetworkLeft
      ? ["After either, nothing uses its network any more:", `  docker network rm ${projectNetwork(name)}`]
      : []),
    "Delete the webhook at the git host. To bring the project back: hotpush init",
  );
}

function unfinished({ files }: MachinePart, name: string, ending: RemovalEnding): readonly string[] {
  const notes = [
    ...(ending.caddyFailure === null
      ? []
      : [`Caddy did not start again without its ports. Docker says: ${ending.caddyFailure.join(" ")}`]),
    ...(ending.isNoticed ? [] : ["Hotpush has not noticed it yet. See: hotpush projects"]),
    ...(ending.isOutOfCaddy
      ? []
      : [
          `Caddy still has the site of ${name}. To see why: hotpush status; or: ${serverCommands(files).logsOf(machineServices.run, machineServices.caddy)}`,
        ]),
  ];
  return notes.map((text) => wrapFor(process.stdout, `- ${text}`, "  "));
}
