import type { Argv } from "../../platform/run-command.ts";
import type { StackService } from "./stack.ts";

export type ResolveImage = "always" | "changed" | "never";

export interface Deploy {
  readonly stack: string;
  readonly files: readonly string[];
  readonly resolveImage: ResolveImage;
}

/** `docker stack deploy` of `files`, of which "-" is standard input. */
export function deployCommand({ stack, files, resolveImage }: Deploy): Argv {
  return [
    "docker",
    "stack",
    "deploy",
    ...composeFileFlags(files),
    "--detach=true",
    "--with-registry-auth",
    `--resolve-image=${resolveImage}`,
    stack,
  ];
}

/** `docker stack config`: the one file that `files` are when they are merged and their variables are filled in. */
export function stackConfigCommand(files: readonly string[]): Argv {
  return ["docker", "stack", "config", ...composeFileFlags(files)];
}

/**
 * What a roll-out adds to the stack file: for each service the image by the name of its commit, and an update that
 * starts the new task before it stops the old one.
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

export function pushCommand(reference: string): Argv {
  return ["docker", "push", reference];
}

function composeFileFlags(files: readonly string[]): readonly string[] {
  return files.flatMap((file) => ["--compose-file", file]);
}
