import type { Command } from "commander";
import { type CommandContext, newCommand } from "./command.ts";

/** `hotpush receive`, for its help: main.ts starts the role. */
export function makeReceiveCommand(_context: CommandContext): Command {
  const description =
    "Receive the pushes of all projects in PROJECTS_PATH: verify them, store them, and offer them to hotpush run on the Unix socket INBOX_SOCKET. It needs no repositories, no Docker and no secrets of deploy scripts (docs/projects.md).";
  return newCommand("receive", description, [
    "hotpush receive   with PROJECTS_PATH and STATE_PATH in its environment",
  ]);
}

/** `hotpush run`, for its help: main.ts starts the role. */
export function makeRunCommand(_context: CommandContext): Command {
  const description =
    "Run the deployments of all projects in PROJECTS_PATH: take the pushes from hotpush receive, and answer the other commands. It listens on no port (docs/projects.md).";
  return newCommand("run", description, [
    "hotpush run   with the same PROJECTS_PATH, and INBOX_SOCKET of hotpush receive",
  ]);
}

/** `hotpush page`, for its help: main.ts starts the role. */
export function makePageCommand(_context: CommandContext): Command {
  const description =
    "Serve the API for people and programs at PAGE_URL: projects, deployments, logs, deploy, cancel, roll back. It asks hotpush run on the Unix socket PAGE_SOCKET, with the token of its visitor, and keeps nothing (docs/api.md).";
  return newCommand("page", description, ["hotpush page   with PAGE_URL and PAGE_SOCKET in its environment"]);
}
