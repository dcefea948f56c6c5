import { dirname } from "node:path";
import { type ComposeRun, hasSucceeded, runCompose } from "../../platform/compose/run-compose.ts";
import { namesRegistry } from "../../platform/docker/image.ts";
import type { Argv } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import { timed } from "../report/report.ts";
import type { StackRollout } from "./context.ts";
import type { StackService } from "./stack.ts";

const deployTimeoutMs = 5 * 60_000;

/** The image of each service, by its name in the stack file, and whether registries are asked for newer ones. */
export interface StackDeployment {
  readonly images: ReadonlyMap<string, string>;
  readonly withPull: boolean;
}

/**
 * Deploys the stack, or only some of its services. Swarm then works on by itself.
 *
 * @throws ProblemError `stack_refused` with Docker's message
 */
export async function deployStack(
  rollout: StackRollout,
  services: readonly StackService[],
  { images, withPull }: StackDeployment,
): Promise<void> {
  const { project, target, report } = rollout;
  const isWhole = services.length === project.services.length;
  const resolveImage = resolveImageOf([...images.values()], withPull);
  const overlay = deployInput(project.services, images);
  const deploy = async () => {
    const files = isWhole ? [...target.files, "-"] : ["-"];
    const input = isWhole ? overlay : await partOf(rollout, services, overlay);
    // Docker resolves the relative paths in a file on standard input from the working directory.
    const directory = isWhole ? "." : dirname(target.files[0] ?? ".");
    const argv = deployCommand({ stack: project.name, files, resolveImage });
    await run(rollout, argv, { timeoutMs: deployTimeoutMs, input, directory });
  };
  const what = isWhole ? "" : `: ${services.map(({ name }) => name).join(", ")}`;
  await timed({ report }, "deploy", deploy, () => `stack ${project.name}${what}`);
}

type ResolveImage = "always" | "changed" | "never";

/**
 * Asking the registry for every image would also update images that this commit did not change. Asking for an image
 * that is in no registry only takes time.
 */
function resolveImageOf(images: readonly string[], withPull: boolean): ResolveImage {
  if (withPull) return "always";
  return images.some(namesRegistry) ? "changed" : "never";
}

/**
 * The additions of a roll-out to the stack file: for each service the image by its name with the commit, and an update
 * that starts the new task before it stops the old one.
 */
export function deployInput(services: readonly StackService[], images: ReadonlyMap<string, string>): string {
  const added = services.map(({ name, update }) => {
    const image = images.get(name);
    const isEmpty = Object.keys(update.added).length === 0;
    return [
      name,
      { ...(image === undefined ? {} : { image }), ...(isEmpty ? {} : { deploy: update.added }) },
    ];
  });
  return JSON.stringify({ services: Object.fromEntries(added) });
}

/** The stack file as it is deployed, without the other services. */
async function partOf(
  rollout: StackRollout,
  services: readonly StackService[],
  overlay: string,
): Promise<string> {
  const argv = stackConfigCommand([...rollout.target.files, "-"]);
  const output = await run(rollout, argv, { timeoutMs: deployTimeoutMs, input: overlay });
  const names = services.map(({ name }) => name);
  // Variables are filled in already: what still looks like one is text.
  return onlyServices(output, names).replaceAll("$", () => "$$");
}

/** `docker stack config`: merges `files` into one and fills in their variables. "-" is standard input. */
export function stackConfigCommand(files: readonly string[]): Argv {
  return ["docker", "stack", "config", ...composeFileFlags(files)];
}

/**
 * The part of a stack file that contains the services `names`, and everything that is not a service. `docker stack
 * deploy` can only deploy a whole file, and leaves services alone that are not in it.
 *
 * @param file the output of `docker stack config`: each service is a key under `services`, one level deeper
 * @throws ProblemError `compose_invalid` if one of them is not found
 */
export function onlyServices(file: string, names: readonly string[]): string {
  const lines = file.split("\n");
  const from = lines.indexOf("services:") + 1;
  const indent = /^ +/.exec(lines[from] ?? "")?.[0] ?? "";
  const length = lines.slice(from).findIndex((line) => line !== "" && !line.startsWith(" "));
  const to = length < 0 ? lines.length : from + length;
  const wanted = new Set(names);
  const kept: string[] = [];
  let isWanted = false;
  for (const line of lines.slice(from, to)) {
    const name = line.startsWith(`${indent} `) ? null : keyOf(line);
    if (name !== null) isWanted = wanted.delete(name);
    if (isWanted) kept.push(line);
  }
  if (wanted.size > 0) throw notFound([...wanted]);
  return [...lines.slice(0, from), ...kept, ...lines.slice(to)].join("\n");
}

/** Names that YAML would read as another type (a number) are quoted. */
function keyOf(line: string): string | null {
  return /^ *"?([^\s":]+)"?:/.exec(line)?.[1] ?? null;
}

function notFound(names: readonly string[]): ProblemError {
  const detail = `docker stack config does not show the service ${names.join(", ")}. Nothing more was deployed.`;
  return new ProblemError({ code: "compose_invalid", detail });
}

export interface StackDeployOptions {
  readonly stack: string;
  /** "-" is standard input. */
  readonly files: readonly string[];
  readonly resolveImage: ResolveImage;
}

/** `docker stack deploy` of `files`. */
export function deployCommand({ stack, files, resolveImage }: StackDeployOptions): Argv {
  return [
    "docker",
    ...["stack", "deploy", ...composeFileFlags(files)],
    ...["--detach=true", "--with-registry-auth", `--resolve-image=${resolveImage}`, stack],
  ];
}

function composeFileFlags(files: readonly string[]): readonly string[] {
  return files.flatMap((file) => ["--compose-file", file]);
}

/** Runs `argv` and gives its output. */
async function run(rollout: StackRollout, argv: Argv, options: ComposeRun): Promise<string> {
  const ending = await runCompose(rollout, argv, options);
  if (ending.kind === "exited" && hasSucceeded(ending)) return ending.output;
  throw new ProblemError({
    code: "stack_refused",
    detail: `${argv.slice(0, 3).join(" ")} failed.`,
    evidence: ending.lastLines,
  });
}
