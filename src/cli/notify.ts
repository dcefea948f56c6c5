import type { Command } from "commander";
import type { NotifyJson } from "#calls/shapes";
import { type CommandContext, newCommand, projectOption, refuse } from "./command.ts";
import { accessService, type ProjectChoice } from "./service-access.ts";

interface NotifyOptions extends ProjectChoice {
  readonly test?: boolean;
  readonly json?: boolean;
}

/** `hotpush notify`: its exit code is 0 if every target took the test message, else 1. */
export function makeNotifyCommand({ env, finish }: CommandContext): Command {
  const description =
    "Send a test message to each target in the project's NOTIFY_FILE, and print whether it took it.";
  return newCommand("notify", description, ["hotpush notify --test", "hotpush notify --test --project shop"])
    .addOption(projectOption())
    .option("--test", "send the test message")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ test, json, ...choice }: NotifyOptions) => {
      if (!test) return finish(refuse("Say what to send: hotpush notify --test"));
      const { call, terminal } = accessService(env, choice);
      const answer = await call("testNotifications", {});
      terminal.print(...(json ? [JSON.stringify(answer)] : resultLines(answer)));
      const isGood = answer.results.length > 0 && answer.results.every(({ fault }) => fault === null);
      finish(isGood ? 0 : 1);
    });
}

function resultLines({ project, results }: NotifyJson): readonly string[] {
  if (results.length === 0) {
    return [
      `The project ${project} has no targets: NOTIFY_FILE is not set, or has an error (hotpush doctor).`,
    ];
  }
  return results.map(({ target, fault }) =>
    fault === null ? `ok       ${target}` : `failed   ${target}: ${fault}`,
  );
}
