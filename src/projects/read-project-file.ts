import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { type ProjectSettings, readProjectSettings } from "../config/project.ts";
import { projectVariables } from "../config/settings.ts";
import { isProjectName, type Project } from "./project.ts";

export interface ProjectPaths {
  readonly projectsPath: string;
  /** null: this process must not read what only scripts need. */
  readonly secretsPath: string | null;
}

/** What the file of a project says: its settings, or what is wrong with them. */
export interface ProjectReading {
  readonly name: string;
  /** The bytes that were read. Two readings are the same if these are. */
  readonly texts: readonly string[];
  readonly project: Project | null;
  /** A sentence each. */
  readonly faults: readonly string[];
  readonly warnings: readonly string[];
}

/** Reads the file of one project. */
export function readProjectFile({ projectsPath, secretsPath }: ProjectPaths, name: string): ProjectReading {
  const broken = { name, texts: [], project: null, warnings: [] };
  if (!isProjectName(name))
    return { ...broken, faults: [`${name}.env is not the file of a project: ${nameRule}`] };
  try {
    const text = readText(join(projectsPath, `${name}.env`));
    const secretsFile = secretsPath === null ? null : join(secretsPath, `${name}.env`);
    const secretsText = secretsFile === null ? "" : readSecrets(secretsFile);
    return { ...parse(name, [text, secretsText], secretsPath !== null), name };
  } catch (error) {
    const { code, path, message } = error as NodeJS.ErrnoException;
    return { ...broken, faults: [code ? `${path ?? "A file"} cannot be read (${code}).` : message] };
  }
}

const longestText = 64 * 1024;

/** @throws Error if it is not a file of settings: a pipe would block the service, and a zero byte is in no variable */
function readText(path: string): string {
  const stats = statSync(path);
  if (!stats.isFile()) throw new Error(`${path} is not a regular file.`);
  if (stats.size > longestText) throw new Error(`${path} has more than 64 KiB.`);
  const text = readFileSync(path, "utf8");
  if (text.includes("\0")) throw new Error(`${path} has a zero byte in it.`);
  return text;
}

const nameRule =
  "a name has 1 to 39 lower-case letters, digits and hyphens, and begins with a letter or digit.";

/** @throws Error if others than its owner can read it, or it cannot be read. Without a file there are no secrets. */
function readSecrets(path: string): string {
  const stats = statSync(path, { throwIfNoEntry: false });
  if (stats === undefined) return "";
  if ((stats.mode & 0o077) !== 0) throw new Error(`Other users can read ${path}. Run: chmod 600 ${path}`);
  return readText(path);
}

function parse(
  name: string,
  [text, secretsText]: readonly [string, string],
  readsFiles: boolean,
): Omit<ProjectReading, "name"> {
  const env = parseEnv(text) as Record<string, string>;
  const faults = unknownVariables(env);
  if (!env.REPO_PATH) faults.push("REPO_PATH is missing: the path of the project's checkout.");
  const { settings, warnings } = readProjectSettings(env, faults, { readsFiles });
  const scriptSecrets = parseEnv(secretsText) as Record<string, string>;
  const texts = [text, secretsText, ...secretTexts(settings)];
  if (faults.length > 0) return { texts, project: null, faults, warnings: [] };
  return { texts, project: { name, settings, scriptSecrets }, faults, warnings };
}

/** For `hotpush send` and `hotpush init`. */
const notForService = ["WEBHOOK_URL", "HOTPUSH_GIT_HOST"];

/** A misspelt name would be without effect, and nobody would know. */
function unknownVariables(env: Readonly<Record<string, string>>): string[] {
  return Object.keys(env)
    .filter((name) => !Object.hasOwn(projectVariables, name) && !notForService.includes(name))
    .filter((name) => !/^WEBHOOK_SECRET(_PREVIOUS)?(_FILE)?$/.test(name))
    .map(
      (name) =>
        `${name} is no setting of a project. Variables that only deploy.sh needs belong in the secrets file.`,
    );
}

/** What WEBHOOK_SECRET_FILE, NOTIFY_FILE and COMMIT_STATUS_TOKEN_FILE name may change while the project's file stays as it is. */
function secretTexts({ secrets, notify, commitStatus }: ProjectSettings): readonly string[] {
  const targets = notify.targets.flatMap(({ kind, url, key }) => [kind, url.reveal(), key?.reveal() ?? ""]);
  return [
    secrets.current.reveal(),
    secrets.previous?.reveal() ?? "",
    commitStatus?.token.reveal() ?? "",
    ...targets,
  ];
}
