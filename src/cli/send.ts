import type { Command } from "commander";
import { formatDuration } from "#config/values";
import { readSendSettings, type SendRequest, type Sent, send, signRequest } from "#send/send";
import { type CommandContext, newCommand, print, refuse, say } from "./command.ts";

export const commands = { send: makeSendCommand };

interface SendOptions {
  readonly url?: string;
  readonly project?: string;
  readonly dryRun?: boolean;
  readonly print?: boolean;
  readonly json?: boolean;
}

/** `hotpush send`: sends what a git host would, and prints the result. Its exit code is 0 if the push counts. */
function makeSendCommand({ env, finish }: CommandContext): Command {
  const description =
    "Send a push to the service as a git host does, signed with the secret of the project (from its file on this machine, from the environment, or from .env). The push is the head of this repository. With --dry-run the service answers what it would do, and does nothing.";
  return newCommand("send", description, [
    "hotpush send --dry-run   check the set-up; nothing is deployed",
    "hotpush send             deploy the head of main or master",
  ])
    .option(
      "--url <url>",
      "the address to send to (default: WEBHOOK_URL, else port WEBHOOK_PORT of this machine)",
    )
    .option(
      "--project <name>",
      "the project whose head, secret and address are used (default: that of the working directory)",
    )
    .option("--dry-run", "mark the body as a dry run: nothing is recorded or run")
    .option("--print", "print the signed request as JSON and send nothing: another machine can send it")
    .option("--json", "the result as one JSON object")
    .action(async (options: SendOptions) => finish(await runSend(options, env)));
}

async function runSend(options: SendOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { url, project, dryRun: isDryRun = false } = options;
  const settings = await readSendSettings(env, process.cwd(), url, project);
  const request = { ...settings, isDryRun };
  if (options.print) {
    print(JSON.stringify(await signRequest(request)));
    return 0;
  }
  const sent = await send(request);
  if (options.json) print(JSON.stringify(asJson(request, sent)));
  else printSent(request, sent);
  return sent.isGood ? 0 : 1;
}

function printSent({ url }: SendRequest, { head, status, durationMs, isGood, text }: Sent): void {
  const { commit, subject, ref, repository } = head;
  say(`POST ${url.href}: a signed push of ${commit.slice(0, 7)} "${subject}" to ${ref} of ${repository}.`);
  say(`${status === null ? "No answer" : `Answered with ${status}`}, in ${formatDuration(durationMs)}.`);
  if (isGood) say(text);
  else refuse(text);
}

function asJson({ url, isDryRun }: SendRequest, sent: Sent) {
  const { head, isGood, outcome, text, status, durationMs, answer } = sent;
  const { ref, commit, repository } = head;
  const push = { url: url.href, dryRun: isDryRun, ref, commit, repository };
  return { ok: isGood, outcome, detail: text, ...push, status, durationMs, answer };
}
