import { readFileSync } from "node:fs";
import { resolve } from "node:path";

/** What names an engine, what brings in text from elsewhere that may, and what hides a name (an escape, a variable). */
const hints = /\.engine\b|x-hotpush|hotpush\.\$|\\[xuU]|\0|\b(?:include|extends|label_file)\b/;

/**
 * Whether `files` may say which engine rolls them out. Most say nothing; to know that from their text saves asking
 * compose, which takes longer than all else that is looked at before a roll-out. In doubt it is true.
 */
export function mayNameEngine(
  files: readonly string[],
  projectDirectory: string,
  env: NodeJS.ProcessEnv,
): boolean {
  // Compose looks further than we do: in the directories above, and in files of variables.
  if (files.length === 0 || env.COMPOSE_ENV_FILES) return true;
  try {
    const texts = files.map((file) => readFileSync(resolve(projectDirectory, file), "utf8"));
    // A label can come out of a variable whole.
    return [...texts, ...Object.values(env)].some((text) => text !== undefined && hints.test(text));
  } catch {
    return true;
  }
}
