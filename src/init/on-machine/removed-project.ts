import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import {
  listMachineProjects,
  type MachinePart,
  type MachineProject,
  removedFiles,
} from "../../setup/server.ts";
import { self } from "../../setup/server-files.ts";
import { withoutOtherValues } from "../dotenv-file.ts";
import type { WantedFile } from "../planned-file.ts";

/** The project of the checkout `root` if the machine part had it before, or null. */
export function findRemovedProject(part: MachinePart, root: string): MachineProject | null {
  const removed = { ...part, files: removedFiles(part.files) };
  return listMachineProjects(removed).find(({ env }) => env.REPO_PATH === root) ?? null;
}

/** Its name, with which it gets its history back; null if there is none, or another project has the name now. */
export function formerProjectName(part: MachinePart, root: string): string | null {
  const name = findRemovedProject(part, root)?.name ?? null;
  return listMachineProjects(part).some((one) => one.name === name) ? null : name;
}

/**
 * The files of a project. If it was removed before, those that are missing are made from the ones that were kept, so that its
 * secrets are the same.
 */
export function withRemovedFiles(
  part: MachinePart,
  { root, name }: { readonly root: string; readonly name: string },
  wanted: readonly WantedFile[],
): readonly WantedFile[] {
  if (findRemovedProject(part, root)?.name !== name) return wanted;
  const kept = removedFiles(part.files).path;
  const secrets: WantedFile = {
    ...{ name: `secrets/${name}.env`, mode: 0o600, owner: self(), purpose: "what only its deploy.sh gets" },
    make: (before) => before ?? "",
    shown: (text) => withoutOtherValues(text, []),
  };
  const all = existsSync(join(kept, secrets.name)) ? [...wanted, secrets] : wanted;
  return all.map((file) => ({
    ...file,
    make: (before) => file.make(before ?? readIfKept(join(kept, file.name))),
  }));
}

function readIfKept(path: string): string | null {
  return existsSync(path) ? readFileSync(path, "utf8") : null;
}
