import type { Command } from "commander";
import type { PauseJson } from "../control/pause.ts";
import { type CommandContext, newCommand, projectOption } from "./command.ts";
import { pauseText } from "./deployment-text.ts";
import { accessService, type ProjectChoice } from "./service-access.ts";

interface PauseOptions extends ProjectChoice {
  readonly reason?: string;
  readonly json?: boolean;
}

interface PauseAnswer {
  readonly project: string;
  readonly paused: PauseJson | null;
}

/** `hotpush pause`: pushes are recorded, and wait. */
export function makePauseCommand({ env, finish }: CommandContext): Command {
  const description =
    "Hold the queue of the project: pushes are recorded, and wait until hotpush resume. A running deployment goes on.";
  return newCommand("pause", description, [
    "hotpush pause --reason 'the database is being moved'",
    "hotpush pause --project shop",
  ])
    .addOption(projectOption())
    .option("--reason <text>", "why, for the people who read the status")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ reason, json, ...choice }: PauseOptions) => {
      const { post, terminal } = accessService(env, choice);
      const answer = await post<PauseAnswer>("/pause", { reason });
      const text = `The queue of ${answer.project} is ${answer.paused ? pauseText(answer.paused) : "not paused"}`;
      terminal.print(json ? JSON.stringify(answer) : text);
      finish(0);
    });
}

/** `hotpush resume`: what waits is deployed. */
export function makeResumeCommand({ env, finish }: CommandContext): Command {
  return newCommand("resume", "Let the queue of the project go on after hotpush pause.", [
    "hotpush resume",
    "hotpush resume --project shop",
  ])
    .addOption(projectOption())
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json, ...choice }: PauseOptions) => {
      const { post, terminal } = accessService(env, choice);
      const answer = await post<PauseAnswer>("/resume");
      terminal.print(json ? JSON.stringify(answer) : `The queue of ${answer.project} goes on.`);
      finish(0);
    });
}
