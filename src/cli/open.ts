import { type Command, Option } from "commander";
import type { NotifyJson } from "#calls/shapes";
import type { GivenBy } from "#calls/table";
import { formatDuration } from "#config/duration";
import { harmless } from "#platform/terminal";
import { formatTable } from "#platform/terminal-layout";
import { type CommandContext, newCommand, numberParser, projectOption, refuse } from "./command.ts";
import { localTime } from "./deployment-text.ts";
import { accessService, type ProjectChoice, type ServiceAccess } from "./service-access.ts";

interface OpenOptions {
  readonly name?: string;
  readonly operator?: boolean;
  readonly token?: string;
  readonly deploy?: boolean;
  readonly list?: boolean;
  readonly endSession?: number;
  readonly endToken?: number;
  readonly json?: boolean;
}

/** `hotpush open`: who may use the page and its API. */
export function makeOpenCommand({ env, finish }: CommandContext): Command {
  const description =
    "Make a link that signs one person in to the page, once, or a token for a program. A viewer looks; an operator may also deploy, cancel, roll back and pause. --list shows who may, and what they did.";
  const id = numberParser(
    1,
    Number.MAX_SAFE_INTEGER,
    "Not the number of a session or a token: hotpush open --list",
  );
  return newCommand("open", description, [
    "hotpush open                            a link for yourself",
    "hotpush open --name Ann                 for somebody who looks",
    "hotpush open --name Ben --operator      for somebody who also acts",
    "hotpush open --token ci --deploy        a token for a program that deploys",
    "hotpush open --list                     sessions, tokens, and what was done",
    "hotpush open --end-token 2              ends a token at once",
  ])
    .option("--name <name>", "somebody else, as the record will name them: a viewer")
    .option("--operator", "they are an operator, as you are")
    .addOption(
      new Option("--token <name>", "a token for a program of this name: it is shown once").conflicts("name"),
    )
    .option("--deploy", "the token may also deploy, cancel, roll back and pause")
    .option("--list", "who is signed in, which tokens there are, and what was done over the page")
    .option("--end-session <id>", "end a session at once", id)
    .option("--end-token <id>", "end a token at once", id)
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async (options: OpenOptions) => {
      const service = accessService(env, { directory: null });
      const { answer, lines } = await act(service, options);
      if (options.json) service.terminal.print(JSON.stringify(answer));
      else if (lines === null) return finish(refuse(noAddress));
      else service.terminal.print(...lines);
      finish(0);
    });
}

interface Done {
  readonly answer: object;
  /** null: there is no page that a link could lead to. */
  readonly lines: readonly string[] | null;
}

async function act({ env, call }: ServiceAccess, options: OpenOptions): Promise<Done> {
  const { list, endSession, endToken, token, deploy = false, name, operator = name === undefined } = options;
  if (endSession !== undefined)
    return {
      answer: await call("endSession", { id: endSession }),
      lines: [`Session ${endSession} has ended.`],
    };
  if (endToken !== undefined)
    return { answer: await call("endToken", { id: endToken }), lines: [`Token ${endToken} has ended.`] };
  if (token !== undefined) {
    const made = await call("makeToken", { name: token, scope: deploy ? "deploy" : "read" });
    return { answer: made, lines: [made.secret] };
  }
  if (list) {
    const [sessions, tokens, audit] = [
      await call("sessions", {}),
      await call("tokens", {}),
      await call("audit", {}),
    ];
    const answer = { ...sessions, ...tokens, ...audit };
    return { answer, lines: listLines(answer) };
  }
  const person = name ?? (env.SUDO_USER || env.USER || "operator");
  const answer = await call("makeLink", { name: person, role: operator ? "operator" : "viewer" });
  const { role, lastsMs, url } = answer;
  const first = `${answer.name} can sign in as ${role} within ${formatDuration(lastsMs)}, once:`;
  return { answer, lines: url === null ? null : [first, `  ${url}`] };
}

const noAddress =
  "The page has no address yet. In the checkout of a project: hotpush init --page https://hotpush.example.com. Without the server, set PAGE_URL (docs/page.md).";

type Everything = GivenBy<"sessions"> & GivenBy<"tokens"> & GivenBy<"audit">;

function listLines({ sessions, tokens, entries }: Everything): readonly string[] {
  const blocks = [
    table(
      ["Session", "Name", "Role", "Last seen", "Address"],
      sessions.map(({ id, name, role, lastSeenAt, address }) => [
        id,
        name,
        role,
        localTime(lastSeenAt),
        address,
      ]),
      "Nobody is signed in.",
    ),
    table(
      ["Token", "Name", "Scope", "Made", "Last used"],
      tokens.map(({ id, name, scope, createdAt, lastUsedAt }) => [
        ...[id, name, scope, localTime(createdAt)],
        lastUsedAt === null ? "never" : localTime(lastUsedAt),
      ]),
      "There are no tokens.",
    ),
    table(
      ["When", "Who", "What", "Project", "Deployment", "Address", "Answer"],
      entries.map(({ at, visitor, action, project, deployment, address, status }) => [
        ...[localTime(at), visitor, action, project, deployment, address],
        status < 400 ? "done" : `refused (${status})`,
      ]),
      "Nothing was done over the page yet.",
    ),
  ];
  return blocks.flatMap((lines, index) => (index === 0 || lines.length === 0 ? lines : ["", ...lines]));
}

function table(
  header: readonly string[],
  rows: readonly (readonly (string | number | null)[])[],
  nothing: string,
): readonly string[] {
  if (rows.length === 0) return nothing === "" ? [] : [nothing];
  return formatTable([header, ...rows.map((cells) => cells.map((cell) => harmless(String(cell ?? ""))))]);
}

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
