import { type Command, InvalidArgumentError, Option } from "commander";
import { parseDurationMs } from "../config/duration.ts";
import { ProblemError } from "../problems.ts";
import { NotMarkableError } from "../sender/delivery.ts";
import { NoHeadError } from "../sender/repository-head.ts";
import { type SendRequest, type Sent, send } from "../sender/send.ts";
import {
  branchToSend,
  repositoryToSend,
  secretToSend,
  sendingEnvironment,
  urlToSend,
} from "../sender/settings.ts";
import { type Event, pingingHosts } from "../sender/sign.ts";
import { type GitHost, gitHosts, isGitHost } from "../setup/git-host.ts";
import { newCommand, refuse, type Surroundings } from "./command.ts";
import { fold } from "./fold.ts";

interface Options {
  readonly host?: GitHost;
  readonly url?: string;
  readonly file?: string;
  readonly event: Event;
  readonly dryRun?: boolean;
  readonly wait?: number;
  readonly json?: boolean;
}

/** How long a dry run waits for a service that is just being started. */
const dryRunWaitMs = 30_000;

/** `hotpush send`: sends what a git host would, and says what came of it. Its exit code is 0 where the push counts. */
export function makeSendCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Sends a push to the service exactly as a git host does: composed from the head of this repository, signed with WEBHOOK_SECRET (from the environment or .env). With --dry-run the service says what it would do, and does nothing.";
  return newCommand("send", summary, [
    "hotpush send --dry-run              is all set up? nothing is deployed",
    "hotpush send                        deploys the head of main or master",
    "hotpush send --event ping",
    "hotpush send --host gitea --url https://shop.example.org/webhook",
  ])
    .addOption(
      new Option("--host <name>", "as which git host (default: that of the remote, else github)").choices(
        gitHosts,
      ),
    )
    .option("--url <url>", "where to (default: WEBHOOK_URL, else port WEBHOOK_PORT of this machine)")
    .option("--file <path>", "the body to send, to the byte, instead of a made-up one")
    .addOption(
      new Option("--event <name>", "push, or a host's ping").choices(["push", "ping"]).default("push"),
    )
    .option("--dry-run", "the body is marked, and signed with its mark: nothing is recorded or run")
    .option(
      "--wait <duration>",
      "try again so long while nothing answers (default: 0; 30s with --dry-run)",
      duration,
    )
    .option("--json", "the result as one JSON object")
    .action(async (options: Options) => finish(await runSend(options, env)));
}

function duration(text: string): number {
  const ms = parseDurationMs(text);
  if (ms !== null) return ms;
  throw new InvalidArgumentError("Not a duration such as 30s or 2m.");
}

async function runSend(options: Options, env: NodeJS.ProcessEnv): Promise<number> {
  try {
    const request = await readRequest(options, env);
    if (typeof request === "string") return refuse(request);
    const sent = await send(request);
    if (options.json) process.stdout.write(`${JSON.stringify(asJson(request, sent))}\n`);
    else tell(request, sent);
    return sent.isGood ? 0 : 1;
  } catch (error) {
    return refuse(whyNothingToSend(error, options));
  }
}

/** @returns what to send and where, or why that cannot be said */
async function readRequest(options: Options, env: NodeJS.ProcessEnv): Promise<SendRequest | string> {
  const { event, file = null, dryRun: isDryRun = false } = options;
  const here = process.cwd();
  const settings = await sendingEnvironment(env, here);
  const signing = secretToSend(settings);
  if ("fault" in signing) return signing.fault;
  const url = urlToSend(options.url, settings);
  if (url === null)
    return "The address must begin with http:// or https://, such as https://shop.example.org/webhook.";
  const named = options.host;
  if (event === "ping" && named !== undefined && !pingingHosts.includes(named)) {
    return `${named} sends no ping; its test button sends a real push. Try: hotpush send --host ${named} --dry-run`;
  }
  const directory = repositoryToSend(settings, here);
  const waitMs = options.wait ?? (isDryRun ? dryRunWaitMs : 0);
  // Whatever the remote is, a ping is only sent by those that have one.
  const host = event === "ping" ? (named ?? "github") : (named ?? chosenHost(settings));
  const branch = branchToSend(settings);
  return { url, secret: signing.secret, directory, host, branch, event, file, isDryRun, waitMs };
}

/** What a person has told `hotpush init`, where the remote's name does not tell. */
function chosenHost({
  HOTPUSH_GIT_HOST: name,
}: Readonly<Record<string, string | undefined>>): GitHost | null {
  return name !== undefined && isGitHost(name) ? name : null;
}

function whyNothingToSend(error: unknown, { file }: Options): string {
  if (error instanceof NoHeadError || error instanceof NotMarkableError) return error.message;
  if (error instanceof ProblemError) return error.problem.detail;
  const { code } = error as NodeJS.ErrnoException;
  if (file !== undefined && code !== undefined) return `${file} cannot be read (${code}).`;
  throw error;
}

function tell(request: SendRequest, sent: Sent): void {
  say(`POST ${request.url.href}: ${told(request, sent)}.`);
  say(sent.seen);
  if (sent.isGood) say(sent.text);
  else refuse(sent.text);
}

function say(text: string): void {
  process.stdout.write(`${fold(text, process.stdout)}\n`);
}

function told({ event, file }: SendRequest, { host, head }: Sent): string {
  const signed = `signed as ${host} does`;
  if (head === null) return `${file === null ? `a ${event}` : file}, ${signed}`;
  const { commit, subject, ref, repository } = head;
  return `a push of ${commit.slice(0, 7)} "${subject}" to ${ref} of ${repository}, ${signed}`;
}

function asJson({ url, event, isDryRun }: SendRequest, sent: Sent) {
  const { host, head, isGood, outcome, text, status, durationMs } = sent;
  const { ref = null, commit = null, repository = null } = head ?? {};
  const push = { url: url.href, host, event, dryRun: isDryRun, ref, commit, repository };
  return { ok: isGood, outcome, detail: text, ...push, status, durationMs, answer: answerOf(sent) };
}

/** The answer as an object where it is JSON, else as the text that came. */
function answerOf({ answer }: Sent): unknown {
  if (answer === null) return null;
  try {
    return JSON.parse(answer) as unknown;
  } catch {
    return answer;
  }
}
