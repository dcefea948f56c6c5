import { Argument, type Command } from "commander";
import { webhookUrl } from "#config/values";
import { checks, examine } from "#doctor/examine";
import { countResults, jsonReport, textReport } from "#doctor/report";
import { openTerminal } from "#platform/terminal";
import { type CommandContext, newCommand, parser } from "./command.ts";

export const commands = { doctor: makeDoctorCommand };

interface DoctorOptions {
  readonly url?: string | null;
  readonly project?: string;
  readonly json?: boolean;
}

/** `hotpush doctor`: its exit code is 0 if nothing keeps a push from being deployed, else 1. */
function makeDoctorCommand({ env, finish }: CommandContext): Command {
  const description =
    "Find everything that keeps a push from being deployed, and how to fix it. Nothing is changed. Run it on the machine of the service, as its user.";
  return newCommand("doctor", description, [
    "hotpush doctor                             this server and this project",
    "hotpush doctor --url https://example.com   as the git host reaches it",
    "hotpush doctor remote branch               only these checks",
  ])
    .addArgument(
      new Argument("[checks...]", "only these, by their names").choices(checks.map(({ id }) => id)),
    )
    .option(
      "--url <url>",
      "where the git host sends to; a signed ping is sent there (default: WEBHOOK_URL)",
      parser((text) => webhookUrl(text)?.href ?? null, "Not a URL that begins with http:// or https://."),
    )
    .option(
      "--project <name>",
      "one project of PROJECTS_PATH (default: that of the working directory, else all)",
    )
    .option("--json", "the result as one JSON object")
    .action(async (names: readonly string[], options: DoctorOptions) =>
      finish(await runDoctor(names, options, env)),
    );
}

async function runDoctor(
  names: readonly string[],
  { json, url = null, project }: DoctorOptions,
  env: NodeJS.ProcessEnv,
): Promise<number> {
  const chosen = checks.filter(({ id }) => names.length === 0 || names.includes(id));
  const reports = await examine(chosen, { env, url, project, directory: process.cwd() });
  const { paint } = openTerminal(process.stdout, env);
  process.stdout.write(json ? `${jsonReport(reports)}\n` : textReport(reports, paint));
  return countResults(reports).problems === 0 ? 0 : 1;
}
