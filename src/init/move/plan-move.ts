import { readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { MoveOptions } from "../../machine-part/move/move-project.ts";
import { type Setting, withSettings } from "../dotenv-file.ts";
import type { MachineSetup } from "../on-machine/plan-on-machine.ts";
import { makeDirectory } from "../on-machine/write.ts";
import { type PlannedFile, planFile, writePlanned } from "../planned-file.ts";
import { caddyfileName } from "../proxy-config.ts";
import { withoutOldSettings } from "./old-settings.ts";
import type { OldSetup } from "./old-setup.ts";

/** Adds to a plan what comes along from an earlier set-up, and takes from `.env` what is not needed there any more. */
export function withOldSetup(setup: MachineSetup, old: OldSetup): MachineSetup {
  const { place, name, project } = setup;
  const settings = Object.entries(old.settings).map(
    ([key, value]): Setting => ({ name: key, value, isOpen: true }),
  );
  const texts = project.composeFiles.map((path) => readFileSync(path, "utf8"));
  const { scriptEnv } = old;
  const secrets = {
    ...{ name: `secrets/${name}.env`, mode: 0o600, purpose: "what only its deploy script needs" },
    make: (before: string | null) => before ?? scriptEnv ?? "",
    shown: () => "",
  };
  return {
    ...setup,
    machineFiles: [
      ...setup.machineFiles.map((file) =>
        file.name === `projects/${name}.env` ? withText(file, withSettings(file.text, settings)) : file,
      ),
      ...(scriptEnv === null ? [] : [planFile(place.files.path, secrets)]),
    ],
    checkoutFiles: setup.checkoutFiles.map((file) =>
      file.name === ".env" ? withText(file, withoutOldSettings(file.text, texts)) : file,
    ),
  };
}

function withText(file: PlannedFile, text: string): PlannedFile {
  if (file.before === null || text === file.before) return { ...file, text };
  return { ...file, text, state: "changed" };
}

/** Makes the directories, and writes the files that all projects share. */
export function writeMachineWide({ directories, machineFiles, name }: MachineSetup): void {
  for (const directory of directories) makeDirectory(directory);
  for (const file of machineFiles) if (!isOfProject(file, name)) writePlanned(file);
}

/** The steps of a move that write files. */
export function fileSteps(
  setup: MachineSetup,
): Pick<MoveOptions, "writeProject" | "removeProject" | "writeCheckout"> {
  const { machineFiles, checkoutFiles, name, project } = setup;
  const own = machineFiles.filter((file) => isOfProject(file, name));
  return {
    writeProject() {
      for (const file of own) writePlanned(file);
    },
    removeProject() {
      for (const file of machineFiles) restore(file, isOfProject(file, name));
    },
    writeCheckout() {
      for (const file of checkoutFiles) writePlanned(file);
      rmSync(join(project.root, caddyfileName), { force: true });
    },
  };
}

/** New files that all projects share may stay: they are right without this project. */
function restore({ path, before, ...file }: PlannedFile, isOwn: boolean): void {
  if (before !== null) writePlanned({ ...file, path, before, text: before, state: "changed" });
  else if (isOwn) rmSync(path, { force: true });
}

function isOfProject({ name }: PlannedFile, project: string): boolean {
  return [`projects/${project}.env`, `secrets/${project}.env`, `sites/${project}.caddy`].includes(name);
}

/** The URLs of the project that must answer as before: those of its services, and where the git host sends to. */
export function sitesOf({ plan, address, place: { ports } }: MachineSetup): readonly URL[] {
  const { https, http } = ports;
  const sites = plan.upstreams.map(({ place }) => {
    if (place.kind === "port") return `http://127.0.0.1:${place.port}/`;
    return address.hasCertificate ? `https://${place.name}:${https}/` : `http://${place.name}:${http}/`;
  });
  return [...new Set([...sites, `${address.payloadUrl.origin}/`].map((site) => new URL(site).href))].map(
    (href) => new URL(href),
  );
}
