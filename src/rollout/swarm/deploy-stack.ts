import { dirname } from "node:path";
import { type ComposeRun, runCompose } from "../../platform/compose/run-compose.ts";
import { namesRegistry } from "../../platform/docker/image.ts";
import { type Argv, hasSucceeded } from "../../platform/run-command.ts";
import { ProblemError } from "../../problems.ts";
import { timed } from "../report/report.ts";
import type { StackRollout, StackService } from "./stack.ts";

const deployTimeoutMs = 5 * 60_000;
const pushTimeoutMs = 30 * 60_000;

/** The image of each service, by its name in the stack file. */
export type StackImages = ReadonlyMap<string, string>;

/**
 * Deploys the stack, but for the service that runs this. Swarm then works on by itself.
 *
 * @throws ProblemError `stack_refused` with Docker's message
 */
export async function deployStack(rollout: StackRollout, images: StackImages): Promise<void> {
  const { project, own } = rollout;
  const deploy = () => (own === null ? deployWhole(rollout, images) : deployOthers(rollout, images));
  const without = own === null ? "" : `, without ${own}, which runs this`;
  await timed(rollout, "deploy", deploy, () => `stack ${project.name}${without}`);
}

async function deployWhole(rollout: StackRollout, images: StackImages): Promise<void> {
  const input = deployInput(rollout.project.services, images);
  await run(rollout, deployCommand(rollout, [...rollout.target.files, "-"], images), { input });
}

/** `docker stack deploy` can only deploy a whole file, and leaves services alone that are not in it. */
async function deployOthers(rollout: StackRollout, images: StackImages): Promise<void> {
  const { target, project } = rollout;
  const overlay = deployInput(project.services, images);
  const file = await run(rollout, stackConfigCommand([...target.files, "-"]), { input: overlay });
  const names = project.services.map(({ name }) => name);
  // Variables are filled in already: what still looks like one is text.
  const input = (await onlyServices(file, names)).replaceAll("$", () => "$$");
  // Docker resolves the relative paths in a file on standard input from the working directory.
  const directory = dirname(target.files[0] ?? ".");
  await run(rollout, deployCommand(rollout, ["-"], images), { input, directory });
}

/**
 * The additions of a roll-out to the stack file: for each service the image by its name with the commit, and an update
 * that starts the new task before it stops the old one.
 */
export function deployInput(services: readonly StackService[], images: StackImages): string {
  const added = services.map(({ name, update }) => {
    const deploy = Object.keys(update.added).length === 0 ? undefined : update.added;
    return [name, { image: images.get(name), deploy }];
  });
  return JSON.stringify({ services: Object.fromEntries(added) });
}

/** `docker stack config`: merges `files` into one and fills in their variables. "-" is standard input. */
export function stackConfigCommand(files: readonly string[]): Argv {
  return ["docker", "stack", "config", ...composeFileFlags(files)];
}

/**
 * The part of a stack file that contains the services `names`, and everything that is not a service.
 *
 * @param file the output of `docker stack config`
 * @throws ProblemError `compose_invalid` if one of them is not found
 */
export async function onlyServices(file: string, names: readonly string[]): Promise<string> {
  // Few roll-outs need the package, so the others do not wait until it is loaded.
  const { isMap, parseDocument } = await import("yaml");
  // Every value stays as it is written: Docker reads YAML 1.1, in which 010 is 8 and `on` is true.
  const document = parseDocument(file, { schema: "failsafe" });
  const services = document.get("services");
  const items = isMap(services) ? services.items : [];
  const missing = names.filter((name) => !items.some(({ key }) => String(key) === name));
  if (missing.length > 0 || !isMap(services)) throw notFound(missing);
  services.items = items.filter(({ key }) => names.includes(String(key)));
  return document.toString({ lineWidth: 0 });
}

function notFound(names: readonly string[]): ProblemError {
  const detail = `docker stack config does not show the service ${names.join(", ")}. Nothing more was deployed.`;
  return new ProblemError({ code: "compose_invalid", detail });
}

/** `docker stack deploy` of `files`; "-" is standard input. */
export function deployCommand(
  { project, withPull }: Pick<StackRollout, "project" | "withPull">,
  files: readonly string[],
  images: StackImages,
): Argv {
  return [
    "docker",
    ...["stack", "deploy", ...composeFileFlags(files)],
    ...["--detach=true", "--with-registry-auth", `--resolve-image=${resolveImageOf(images, withPull)}`],
    project.name,
  ];
}

function composeFileFlags(files: readonly string[]): readonly string[] {
  return files.flatMap((file) => ["--compose-file", file]);
}

/**
 * Asking the registry for every image would also update images that this commit did not change. Asking for an image
 * that is in no registry only takes time.
 */
function resolveImageOf(images: StackImages, withPull: boolean): "always" | "changed" | "never" {
  if (withPull) return "always";
  return [...images.values()].some(namesRegistry) ? "changed" : "never";
}

/** Runs `argv` and gives its output. */
async function run(
  rollout: StackRollout,
  argv: Argv,
  options: Omit<ComposeRun, "timeoutMs">,
): Promise<string> {
  const ending = await runCompose(rollout, argv, { timeoutMs: deployTimeoutMs, ...options });
  if (hasSucceeded(ending)) return ending.output;
  throw new ProblemError({
    code: "stack_refused",
    detail: `${argv.slice(0, 3).join(" ")} failed.`,
    evidence: ending.lastLines,
  });
}

/**
 * Pushes those `references` that contain a registry, so that every node can pull them.
 *
 * @throws ProblemError `image_push_failed` with Docker's message
 */
export async function pushImages(rollout: StackRollout, references: readonly string[]): Promise<void> {
  for (const reference of new Set(references.filter(namesRegistry))) {
    await timed(rollout, "push", () => push(rollout, reference), reference);
  }
}

async function push(rollout: StackRollout, reference: string): Promise<void> {
  const ending = await runCompose(rollout, pushCommand(reference), { timeoutMs: pushTimeoutMs });
  if (hasSucceeded(ending)) return;
  throw new ProblemError({
    code: "image_push_failed",
    detail: `The image ${reference} could not be pushed. Is the registry up, and was docker login run for this user?`,
    evidence: ending.lastLines,
  });
}

export function pushCommand(reference: string): Argv {
  return ["docker", "push", reference];
}
