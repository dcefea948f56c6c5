import type { Command } from "commander";
import { type CommandContext, newCommand } from "./command.ts";

/** `hotpush front`, for its help: main.ts starts the role. */
export function makeFrontCommand(_context: CommandContext): Command {
  const description =
    "Do all that reads bytes from outside: verify the deliveries for the projects in PROJECTS_PATH, store their pushes in SPOOL_PATH, and serve the page at PAGE_URL, if that is set. It asks hotpush run on the Unix socket FRONT_SOCKET, and needs no repositories, no Docker and no secrets of deploy scripts (docs/projects.md).";
  return newCommand("front", description, [
    "hotpush front   with PROJECTS_PATH and STATE_PATH in its environment",
  ]);
}

/** `hotpush run`, for its help: main.ts starts the role. */
export function makeRunCommand(_context: CommandContext): Command {
  const description =
    "Run the deployments of all projects in PROJECTS_PATH: take the pushes from the spool of hotpush front, and answer the page and the other commands. It listens on no port (docs/projects.md).";
  return newCommand("run", description, [
    "hotpush run   with the same PROJECTS_PATH, and SPOOL_PATH of hotpush front",
  ]);
}
