import type { Command } from "commander";
import { callService } from "../control/client.ts";
import type { StatusJson } from "../control/status.ts";
import { openTerminal } from "../platform/terminal/terminal.ts";
import { asking } from "./ask-service.ts";
import { newCommand, type Surroundings } from "./command.ts";
import { statusLines } from "./status-text.ts";

/** `hotpush status`: its exit code is 0 where the service is healthy. */
export function makeStatusCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Shows what runs now, what waits, how the last deployment of each branch ended, and how the service is. Exit code 0 where it is healthy.";
  return newCommand("status", summary, [
    "hotpush status          what is going on",
    "hotpush status --json   the same for a program",
  ])
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json }: { readonly json?: boolean }) =>
      finish(
        await asking(env, async (statePath) => {
          const status = await callService<StatusJson>(statePath, "GET", "/status");
          const terminal = openTerminal(process.stdout, env);
          terminal.print(...(json ? [JSON.stringify(status)] : statusLines(status, terminal)));
          return status.health.isHealthy ? 0 : 1;
        }),
      ),
    );
}
