/** What `COPY . .` takes into an image beside the app: a static server shows it to the world. */
import { existsSync } from "node:fs";
import { isAbsolute, join, resolve } from "node:path";
import type { ComposeModel } from "#platform/compose";
import { attempt } from "#platform/files";
import { readForeignFile } from "#platform/foreign-files";
import { quote } from "#platform/ssh";

/** A Dockerfile that copies everything, or everything in the directory, from its build context. */
const copiesAll = /^[ \t]*(?:COPY|ADD)[ \t]+(?:--(?!from=)\S+[ \t]+)*(?:\[[ \t]*)?"?(?:\.\/?|\*)"?[\s,]/im;

const longestPattern = 4_096;

/** Secrets, and the history with the address of the remote. */
const privateNames = [".env", ".git"];

/**
 * Finds build contexts of `services` whose images get `.env` or `.git`.
 *
 * @returns for each a sentence, and the command that excludes them
 */
export function findExposedFiles(services: ComposeModel["services"]) {
  const found = Object.entries(services).flatMap(([service, { build }]) => {
    const { context, dockerfile = "Dockerfile", dockerfile_inline: inline, target } = Object(build) as Build;
    // Others are fetched by the builder.
    if (context === undefined || !isAbsolute(context)) return [];
    const file = resolve(context, dockerfile);
    if (!stagesOf(inline ?? read(file), target).some((stage) => copiesAll.test(stage))) return [];
    const ignore = read(`${file}.dockerignore`) || read(join(context, ".dockerignore"));
    const names = privateNames.filter((name) => existsSync(join(context, name)) && !isIgnored(name, ignore));
    if (names.length === 0) return [];
    const text = `The image of ${service} gets ${names.join(" and ")}, because its Dockerfile copies all of ${context}. An app that serves its own directory shows them to everybody. Exclude them with .dockerignore, and commit that.`;
    const command = `printf '%s\\n' '' ${names.join(" ")} >> ${quote(join(context, ".dockerignore"))}`;
    return [[command, { text, command }] as const];
  });
  // Services with one build context have one fault.
  return [...new Map(found).values()];
}

/** The part of `build` that counts here, as compose resolves it. */
interface Build {
  readonly context?: string;
  readonly dockerfile?: string;
  readonly dockerfile_inline?: string;
  readonly target?: string;
}

/** The stages whose files are in the image: the built one, and those that it is `FROM`. Of others, it copies what it needs. */
function stagesOf(dockerfile: string, target?: string): readonly string[] {
  const stages = dockerfile.split(/^(?=[ \t]*FROM\s)/im).filter((text) => /^[ \t]*FROM\s/i.test(text));
  const heads = stages.map((text) => {
    const [, base = "", name = ""] =
      /^[ \t]*FROM[ \t]+(?:--\S+[ \t]+)*(\S+)(?:[ \t]+AS[ \t]+(\S+))?/i.exec(text) ?? [];
    return { base: base.toLowerCase(), name: name.toLowerCase() };
  });
  const named = (name: string) => heads.findIndex((head) => head.name === name);
  const wanted = target?.toLowerCase() || undefined;
  const chain: string[] = [];
  let place =
    wanted === undefined ? stages.length - 1 : /^\d+$/.test(wanted) ? Number(wanted) : named(wanted);
  while (stages[place] !== undefined) {
    chain.push(stages[place] ?? "");
    const base = named(heads[place]?.base ?? "");
    // A stage may be called like the image that it is from.
    place = base < place ? base : -1;
  }
  return chain;
}

function read(path: string): string {
  return attempt(() => readForeignFile(path, { mostBytes: 1024 ** 2 }).toString(), "");
}

/** Whether .dockerignore excludes what has this name in the build context: the last line about it counts. */
function isIgnored(name: string, text: string): boolean {
  const patterns = [name, `${name}*`, `*${name}`, ".*", "*", "**"];
  const lines = text
    .split("\n")
    .filter((line) => line.length <= longestPattern)
    .map((line) => /^(!?)(?:\.?\/|\*\*\/)*(.*?)(?:\/\**)?$/.exec(line.trim()) ?? []);
  const last = lines.findLast(([, , pattern = ""]) => patterns.includes(pattern));
  return last !== undefined && last[1] === "";
}
