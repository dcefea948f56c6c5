import { type Command, Option } from "commander";
import type { GivenBy } from "#calls/table";
import { formatDuration } from "#config/values";
import { formatTable, harmless } from "#platform/terminal";
import { CommandError } from "#problems";
import { type CommandContext, newCommand, numberParser, projectOption } from "./command.ts";
import { localTime } from "./deployment-text.ts";
import { answering, type ServiceAccess, type Told } from "./service-access.ts";

export const commands = { notify: makeNotifyCommand, open: makeOpenCommand };

interface OpenOptions {
  readonly name?: string;
  readonly operator?: boolean;
  readonly token?: string;
  readonly deploy?: boolean;
  readonly list?: boolean;
  readonly end?: number;
}

/** `hotpush open`: who may use the page and its API. */
function makeOpenCommand(context: CommandContext): Command {
  const description =
    "Make a link that signs one person in to the page, once, or a token for a program. A viewer looks; an operator may also deploy, cancel, roll back and pause. --list shows who may, and what they did.";
  const id = numberParser(1, Number.MAX_SAFE_INTEGER, "Not one of those in: hotpush open --list");
  const command = newCommand("open", description, [
    "hotpush open                       a link for yourself",
    "hotpush open --name Ben            for somebody who looks",
    "hotpush open --token ci --deploy   a token for a program that deploys",
  ])
    .option("--name <name>", "somebody else, as the record will name them: a viewer")
    .option("--operator", "they are an operator, as you are")
    .addOption(
      new Option("--token <name>", "a token for a program of this name: it is shown once").conflicts("name"),
    )
    .option("--deploy", "the token may also deploy, cancel, roll back and pause")
    .option("--list", "who is signed in, which tokens there are, and what was done over the page")
    .option("--end <number>", "end a session or a token at once", id);
  return answering(command, context, act);
}

async function act({ env, call }: ServiceAccess, options: OpenOptions): Promise<Told> {
  const { list, end, token, deploy = false, name, operator = name === undefined } = options;
  if (end !== undefined) {
    const answer = await call("endVisitor", { id: end });
    return { answer, lines: () => [`The ${answer.kind} ${end} of ${harmless(answer.name)} has ended.`] };
  }
  if (token !== undefined) {
    const answer = await call("makeToken", { name: token, role: deploy ? "operator" : "viewer" });
    return { answer, lines: () => [answer.secret] };
  }
  if (list) {
    const answer = { ...(await call("visitors", {})), ...(await call("audit", {})) };
    return { answer, lines: () => listLines(answer) };
  }
  const person = name ?? (env.SUDO_USER || env.USER || "operator");
  const answer = await call("makeLink", { name: person, role: operator ? "operator" : "viewer" });
  const { role, lastsMs, url } = answer;
  if (url === null)
    throw new CommandError(
      "The page has no address yet. In the checkout of a project: hotpush init --page https://hotpush.example.com. Without the server, set PAGE_URL (docs/page.md).",
    );
  const first = `${answer.name} can sign in as ${role} within ${formatDuration(lastsMs)}, once:`;
  return { answer, lines: () => [first, `  ${url}`] };
}

function listLines({ visitors, entries }: GivenBy<"visitors"> & GivenBy<"audit">): readonly string[] {
  const people = visitors.map(({ id, kind, name, role, createdAt, seenAt, address }) => {
    const seen = seenAt === null ? "never" : localTime(seenAt);
    return [id, kind, name, role, localTime(createdAt), seen, address];
  });
  const acts = entries.map(({ at, visitor, action, project, deployment, address, status }) => {
    const answer = status < 400 ? "done" : `refused (${status})`;
    return [localTime(at), visitor, action, project, deployment, address, answer];
  });
  const nobody = "Nobody is signed in, and there are no tokens.";
  const nothing = "Nothing was done over the page yet.";
  return [
    ...(people.length > 0 ? table("Number Kind Name Role Made Seen Address", people) : [nobody]),
    "",
    ...(acts.length > 0 ? table("When Who What Project Deployment Address Answer", acts) : [nothing]),
  ];
}

function table(header: string, rows: readonly (readonly (string | number | null)[])[]): readonly string[] {
  const cells = rows.map((row) => row.map((cell) => harmless(String(cell ?? ""))));
  return formatTable([header.split(" "), ...cells]);
}

/** `hotpush notify`: its exit code is 0 if every target took the test message, else 1. */
function makeNotifyCommand(context: CommandContext): Command {
  const description =
    "Send a test message to each target in the project's NOTIFY_FILE, and print whether it took it.";
  const command = newCommand("notify", description, ["hotpush notify --test"])
    .addOption(projectOption())
    .requiredOption("--test", "send the test message");
  return answering(command, context, async ({ call }) => {
    const answer = await call("testNotifications", {});
    const { project, results } = answer;
    const none = `The project ${project} has no targets: NOTIFY_FILE is not set, or has an error (hotpush doctor).`;
    const lines = results.map(({ target, fault }) =>
      fault === null ? `ok       ${target}` : `failed   ${target}: ${fault}`,
    );
    const isGood = results.length > 0 && results.every(({ fault }) => fault === null);
    return { answer, isGood, lines: () => (results.length === 0 ? [none] : lines) };
  });
}
