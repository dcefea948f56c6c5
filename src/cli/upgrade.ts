import type { Command } from "commander";
import { formatDuration } from "../config/duration.ts";
import { machineServices, servicesOf } from "../config/machine-part.ts";
import { isOwnImage, type PlannedUpgrade, planUpgrade } from "../init/on-machine/plan-upgrade.ts";
import { makeDirectory } from "../init/on-machine/write.ts";
import { buildOwnImage, hasOwnImage } from "../init/own-image.ts";
import { type PlannedFile, writePlanned } from "../init/planned-file.ts";
import { connectEngine } from "../platform/docker/engine.ts";
import { isInContainer } from "../platform/docker/mountinfo.ts";
import { rewriteFile } from "../platform/replace-file.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { findMachinePart, type MachinePart } from "../setup/server.ts";
import { pageDirectory } from "../setup/server-files.ts";
import { findOutdated, listMachineContainers, type MachineServices } from "../setup/start.ts";
import {
  type UpgradeEnding,
  type UpgradeEvents,
  type UpgradeFiles,
  upgradeMachinePart,
  type WentBack,
} from "../setup/upgrade.ts";
import { type CommandContext, newCommand, print, refuse } from "./command.ts";
import { canAsk, confirm } from "./init-questions.ts";
import { printChanges } from "./init-report.ts";

interface UpgradeOptions {
  readonly yes?: boolean;
  readonly check?: boolean;
}

/** `hotpush upgrade`: the machine part runs the version of the Hotpush that is called. */
export function makeUpgradeCommand({ env, finish }: CommandContext): Command {
  const description =
    "Make the machine part run the version of Hotpush that you call: build its image, update its files, and replace its containers when no deployment runs. No push is lost, and no request of a project fails. If the new version is not healthy, the old one is brought back.";
  return newCommand("upgrade", description, [
    "hotpush upgrade             run the version that is installed here",
    "hotpush upgrade --check     show what would change",
  ])
    .option("--yes", "do not ask")
    .option("--check", "change nothing; show what would change, and exit with 1 if something would")
    .action(async (options: UpgradeOptions) => finish(await upgrade(options, env)));
}

async function upgrade({ yes = false, check = false }: UpgradeOptions, env: NodeJS.ProcessEnv) {
  const part = findMachinePart(env);
  if (part === null) return refuse("There is no machine part on this machine. Make it with: hotpush init");
  if (isInContainer()) return refuse("Run this on the machine: here it would replace its own container.");
  const left = new AbortController();
  const machine = { part, engine: connectEngine(env.DOCKER_HOST), env, signal: left.signal };
  const plan = planUpgrade(part);
  const isImageThere = !isOwnImage(plan.image) || (await hasOwnImage(env));
  const replaced = await servicesToReplace(machine, plan, isImageThere);
  await printPlan(machine, plan, replaced);
  if (replaced.length === 0 && plan.files.every(({ state }) => state === "right")) {
    print("Everything is up to date.");
    return 0;
  }
  if (check) return 1;
  if (!(yes || (await isAgreed(plan.files, replaced)))) return 1;
  if (!isImageThere) await buildOwnImage(env);
  const ending = await upgradeMachinePart(machine, filesOf(part, plan), eventsFor(left));
  return printEnding(ending, plan);
}

/** Before the image is built, its name may still be that of the one that runs. */
async function servicesToReplace(
  machine: MachineServices,
  { composeText, image }: PlannedUpgrade,
  isImageThere: boolean,
): Promise<readonly string[]> {
  const outdated = await findOutdated(machine, composeText, image);
  const isReplaced = (one: string) =>
    outdated.includes(one) || (!isImageThere && one !== machineServices.caddy);
  return servicesOf(machine.part.env).filter(isReplaced);
}

async function printPlan(
  machine: MachineServices,
  { files, image }: PlannedUpgrade,
  replaced: readonly string[],
): Promise<void> {
  const [running] = await listMachineContainers(machine, machineServices.run);
  print(
    `Machine part  ${machine.part.files.path}`,
    `Runs          ${running?.imageName ?? "nothing"}`,
    `New           ${image}`,
    "",
  );
  await printChanges(files, machine.env);
  for (const note of notesOn(replaced, files)) print(wrapFor(process.stdout, `- ${note}`, "  "));
}

function notesOn(replaced: readonly string[], files: readonly PlannedFile[]): readonly string[] {
  const kept = copiedFiles(files).map(({ name }) => name);
  return [
    ...(kept.length === 0
      ? []
      : [`Your present ${kept.join(" and ")} will be kept beside the new text, as *.before.`]),
    ...(replaced.includes(machineServices.caddy)
      ? ["Caddy is replaced too: for a second or two, no project of this machine can be reached."]
      : []),
  ];
}

async function isAgreed(files: readonly PlannedFile[], replaced: readonly string[]): Promise<boolean> {
  const changed = files.filter(({ state }) => state !== "right").map(({ name }) => name);
  const what = [
    ...(changed.length === 0 ? [] : [`change ${changed.join(", ")} as shown`]),
    ...(replaced.length === 0 ? [] : [`replace ${replaced.join(", ")}`]),
  ].join(" and ");
  if (!canAsk()) {
    refuse(`This would ${what}. Nothing was changed; to agree: hotpush upgrade --yes`);
    return false;
  }
  if (await confirm(`${what[0]?.toUpperCase()}${what.slice(1)}?`)) return true;
  refuse("Nothing was changed.");
  return false;
}

function filesOf(
  part: MachinePart,
  { files, image, composeText }: PlannedUpgrade,
): { readonly before: UpgradeFiles; readonly after: UpgradeFiles } {
  const { composeFile } = part.files;
  const oldText = files.find(({ path }) => path === composeFile)?.before ?? composeText;
  return {
    before: {
      ...{ composeText: oldText, image: part.env.HOTPUSH_IMAGE ?? image },
      write: () => files.forEach(restore),
    },
    after: {
      ...{ composeText, image },
      write() {
        makeDirectory(pageDirectory(part));
        for (const { path, before } of copiedFiles(files)) rewriteFile(`${path}.before`, before ?? "", path);
        files.forEach(writePlanned);
      },
    },
  };
}

/** A person may have changed them. Of `.env`, only the image changes. */
function copiedFiles(files: readonly PlannedFile[]): readonly PlannedFile[] {
  return files.filter(({ name, state }) => name !== ".env" && state === "changed");
}

function restore({ path, before, state }: PlannedFile): void {
  if (state === "changed" && before !== null) rewriteFile(path, before);
}

/** Ctrl-C ends the wait for deployments. After that, it would leave the machine part between two versions. */
function eventsFor(left: AbortController): UpgradeEvents {
  const leave = () => left.abort();
  const finishFirst = () => process.stderr.write("The upgrade is nearly done, and ends by itself.\n");
  process.once("SIGINT", leave).once("SIGTERM", leave);
  return {
    onWaiting(running) {
      const names = running.map(({ id, project }) => `${id} of ${project}`).join(", ");
      print(
        wrapFor(process.stdout, `Waiting for deployment ${names}; no other starts. Ctrl-C changes nothing.`),
      );
    },
    onQuiet() {
      process.removeListener("SIGINT", leave).removeListener("SIGTERM", leave);
      process.on("SIGINT", finishFirst).on("SIGTERM", finishFirst);
    },
    onReplaced: (service, tookMs) => print(`Replaced ${service} in ${formatDuration(tookMs)}.`),
  };
}

function printEnding(ending: UpgradeEnding, { image }: PlannedUpgrade): number {
  if (ending.kind === "left") return refuse("The upgrade was given up before anything was changed.");
  if (ending.kind === "went-back") return refuse(wentBackText(ending), ending.reason);
  print(`The machine part runs ${image}.`);
  return 0;
}

function wentBackText({ service, unrecovered }: WentBack): string {
  const failed = `The new ${service} is not healthy`;
  if (unrecovered.length === 0)
    return `${failed}, so the machine part runs the old version again. Docker says:`;
  const names = unrecovered.join(" and ");
  return `${failed}. The files are the old ones again, but ${names} did not start with them either. See: docker compose --project-name hotpush logs --tail 50 ${unrecovered.join(" ")}
Docker says:`;
}
