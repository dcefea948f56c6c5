import { readFileSync } from "node:fs";
import { join } from "node:path";
import { namedFiles, namingFiles } from "../../platform/compose/commands.ts";
import { withoutOtherValues, withSettings } from "../dotenv-file.ts";
import { findTracked, findUnignored, gitDirectory } from "../git-checkout.ts";
import { ownRoot } from "../own-image.ts";
import { type PlannedFile, planFile, type WantedFile } from "../planned-file.ts";
import { findOverride, isWrittenByInit, ownComposeFile, type SetupProject } from "../project.ts";
import { SetupError } from "../setup-error.ts";

/** The compose file of ours in a checkout, and how compose finds it. */
export interface OverrideFile {
  readonly name: string;
  /** `COMPOSE_FILE` of .env names it; or compose uses a file of this name by itself; or a person has named it. */
  readonly foundBy: "dotenv" | "name" | "person";
}

/**
 * Chooses the file. If .env is in the repository it stays as it is, so compose has to find the file by its name.
 *
 * @throws SetupError if compose cannot find a file of ours
 */
export async function chooseOverrideFile({ root, env }: SetupProject): Promise<OverrideFile> {
  const [tracked] = await findTracked(root, [".env"]);
  if (tracked === undefined) return { name: ownComposeFile, foundBy: "dotenv" };
  const named = namedFiles(env);
  if (named.some((file) => join(root, file) === join(root, ownComposeFile))) {
    return { name: ownComposeFile, foundBy: "person" };
  }
  if (named.length > 0) throw new SetupError(namedInRepository);
  const present = findOverride(root);
  if (present === null || isWrittenByInit(join(root, present)))
    return { name: usualOverride, foundBy: "name" };
  throw new SetupError(
    `.env is in the repository, so it stays as it is, and there is no other way for a file of Hotpush's: compose uses only one override, and that is your ${present}. Add a line COMPOSE_FILE to .env that names your files and ${ownComposeFile}, or take .env out of git: git rm --cached .env`,
  );
}

const usualOverride = "compose.override.yaml";
const namedInRepository = `.env is in the repository, so it stays as it is, and its COMPOSE_FILE names the compose files. Add ${ownComposeFile} to it and run this again, or take .env out of git: git rm --cached .env`;

/** The files of a checkout that is deployed by the machine part. */
export async function planCheckoutFiles(
  project: SetupProject,
  override: OverrideFile,
  overrideText: string,
): Promise<readonly PlannedFile[]> {
  const { root } = project;
  const compose: WantedFile = {
    ...{ name: override.name, mode: null, purpose: "your services as Caddy reaches them" },
    make: () => overrideText,
  };
  const wanted = [deployScript, compose, ...(override.foundBy === "dotenv" ? [dotenv(project)] : [])];
  const planned = wanted.map((file) => planFile(root, file));
  const own = [override.name, ...(override.foundBy === "dotenv" ? [".env"] : [])];
  const unignored = await findUnignored(root, own);
  return unignored.length === 0 ? planned : [...planned, await planExclusion(root, unignored)];
}

function dotenv(project: SetupProject): WantedFile {
  const settings = [{ name: "COMPOSE_FILE", value: composeFileList(project), isOpen: false }];
  return {
    ...{ name: ".env", mode: null, purpose: `adds ${ownComposeFile} to your compose file` },
    make: (before) => withSettings(before ?? "", settings),
    shown: (text) => withoutOtherValues(text, settings),
  };
}

/** In .git/info/exclude, because .gitignore belongs to the repository. */
async function planExclusion(root: string, names: readonly string[]): Promise<PlannedFile> {
  const planned = planFile(await gitDirectory(root), {
    ...{ name: "info/exclude", mode: null, purpose: `${names.join(" and ")}: this machine's alone` },
    make: (before) =>
      withLines(
        before ?? "",
        names.map((name) => `/${name}`),
      ),
  });
  return { ...planned, name: ".git/info/exclude" };
}

/** The value of COMPOSE_FILE with our own file in it: absolute paths, so that it is the same from any working directory. */
function composeFileList({ root, composeFiles: files, env }: SetupProject): string {
  return namingFiles([...files, join(root, ownComposeFile)], env);
}

/** The deploy script; one that is there stays. */
const deployScript: WantedFile = {
  name: "deploy.sh",
  mode: 0o755,
  purpose: "pulls, builds, replaces, checks; yours to change",
  make: (before) => before ?? readFileSync(join(ownRoot, "examples/deploy.sh"), "utf8"),
};

/** The text with `lines` at its end. */
function withLines(text: string, lines: readonly string[]): string {
  const kept = text.replace(/\n*$/, "");
  return [...(kept === "" ? [] : [kept]), ...lines, ""].join("\n");
}
