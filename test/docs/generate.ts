/**
 * `npm run docs`: writes the parts of README.md and docs/ that come from tables of the code. Such a part stands between the
 * lines `<!-- generated: name -->` and `<!-- end -->`. With `--check`, as in `npm run lint`, it only says which are old.
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { families } from "../../src/calls/metrics.ts";
import { apiCalls } from "../../src/calls/openapi.ts";
import { type Call, placeOf } from "../../src/calls/table.ts";
import { loadProgram } from "../../src/cli/command-line.ts";
import { type GitHost, gitHostNames, gitHosts } from "../../src/config/git-hosts.ts";
import {
  projectVariables,
  type Setting,
  secretVariables,
  serviceVariables,
} from "../../src/config/settings.ts";
import { formatDuration, formatSize } from "../../src/config/values.ts";
import { transitions } from "../../src/deployments/deployment.ts";
import { defaultMaxLookMs } from "../../src/deployments/resolve.ts";
import { checks } from "../../src/doctor/examine.ts";
import { longestBodyBytes } from "../../src/front/page/answer.ts";
import { mostOfVisitor } from "../../src/front/page/page.ts";
import { mostWaitingByDefault } from "../../src/front/webhook/spool.ts";
import { maxNameChars, mostPages, perPage } from "../../src/notifications/host-checks.ts";
import { mostNames } from "../../src/platform/foreign-files.ts";
import { fetchTimeoutMs, maxTextChars } from "../../src/platform/git.ts";
import { maxHeaders, mostConnections } from "../../src/platform/http-server.ts";
import { defaultMaxOutputBytes, maxLineChars } from "../../src/platform/run-command.ts";
import { problems } from "../../src/problems.ts";
import { countingLines } from "../../src/rollout/requests.ts";
import { maxSignedCommitBytes } from "../../src/runner/signatures.ts";
import { hostApis } from "../../src/setup/host-apis.ts";
import { webhookForm } from "../../src/setup/webhook-form.ts";

const root = join(import.meta.dirname, "../..");
const { WEBHOOK_PORT } = serviceVariables;
const { REPO_PATH, BRANCH, ALLOWED_SIGNERS, DEPLOY_TIMEOUT, DEPLOY_ENV, NOTIFY_FILE } = projectVariables;
const firstSettings = {
  WEBHOOK_SECRET: secretVariables.WEBHOOK_SECRET,
  WEBHOOK_PORT,
  REPO_PATH,
  BRANCH,
  DEPLOY_TIMEOUT,
  DEPLOY_ENV,
  ALLOWED_SIGNERS,
  NOTIFY_FILE,
};

/** What each generated part holds, by its name. A part `hotpush <command>` holds the help of that command. */
const parts: Readonly<Record<string, () => string>> = {
  "first settings": () => settingsTable(firstSettings).replaceAll("](", "](docs/"),
  "settings of the service": () => settingsTable(serviceVariables),
  "settings of a project": () => settingsTable({ ...secretVariables, ...projectVariables }),
  "answers to a request": () => table("Code | Status | Meaning", problemRows("status")),
  "problems at start": () => table("Code | Exit code | Meaning", problemRows("exitCode")),
  "problems of a deployment": () => table("Code | Meaning", problemRows(null)),
  "tokens to connect": () =>
    table(
      "Git host | Token",
      Object.entries(hostApis).map(([name, { token }]) => [gitHosts[name as GitHost].title, token]),
    ),
  transitions: () =>
    table(
      "State | Next",
      Object.entries(transitions).map(([state, next]) => [code(state), next.map(code).join(", ") || "–"]),
    ),
  metrics: () =>
    table(
      "Metric | Type | Meaning",
      Object.entries(families).map(([name, { type, help }]) => [code(name), type, help]),
    ),
  "calls of the API": () =>
    table(
      "Call | Right | What",
      apiCalls.map(([, row]) => callRow(row)),
    ),
  "counting lines of a Caddyfile": () => fence(countingLines),
  checks: () =>
    table(
      "Check | What it claims | Its fix",
      checks.map(({ id, claim, fix }) => [code(id), claim, `${fix}.`]),
    ),
  "webhook forms": () => table("Git host | Where | Fields | And then", gitHostNames.map(formRow)),
  bounds: () => table("From | What | At most | Beyond it", bounds),
  ...(await commandHelps()),
};

const count = (number: number, noun: string) => `${number.toLocaleString("en-US")} ${noun}`;

/** Bounds on everything that comes from another party: each stands where it is read. */
const bounds: readonly (readonly string[])[] = [
  ["anyone", "a body at the webhook", serviceVariables.WEBHOOK_BODY_LIMIT.fallback, "413"],
  ["anyone", "a body at the page", formatSize(longestBodyBytes), "413"],
  ["anyone", "headers", `16 KiB, under ${maxHeaders}`, "431"],
  ["anyone", "headers, body", "5 s, 10 s", "408"],
  [
    "anyone",
    "requests of a connection at a time",
    "1",
    "the first is answered, then the connection is closed",
  ],
  [
    "anyone",
    "connections of a port",
    `${count(mostConnections, "")}or its share of the open files`,
    "the idlest is closed",
  ],
  ["a visitor", "open requests", String(mostOfVisitor), "429"],
  ["anyone with the secret", "pushes in the spool", count(mostWaitingByDefault, ""), "503, not promised"],
  [
    "a program",
    "output that is read",
    formatSize(defaultMaxOutputBytes),
    "it is killed, and that is the reason",
  ],
  ["a program", "a line", count(maxLineChars, "characters"), "the rest is dropped"],
  ["a pusher", "author or subject of a commit", count(maxTextChars, "characters"), "cut"],
  ["a pusher", "a commit with `ALLOWED_SIGNERS`", formatSize(maxSignedCommitBytes), "`signers_unusable`"],
  [
    "a git host",
    "one look, while others wait for the turn",
    formatDuration(defaultMaxLookMs),
    "the push waits, others go first",
  ],
  ["a git host", "a fetch", formatDuration(fetchTimeoutMs), "the push waits with the reason"],
  ["a git host", "checks of a commit", `${mostPages} pages of ${perPage}`, "the push waits with the reason"],
  ["a git host", "a check's name", count(maxNameChars, "characters"), "cut"],
  ["another user", "files in a directory", count(mostNames, ""), "only so many are looked at"],
].map((row) => row.map((cell) => cell.trim()));

/** README.md and every page of docs/ by its path, with its generated parts as the code has them. */
export function generateDocs(): ReadonlyMap<string, string> {
  const missing = new Set(Object.keys(parts));
  const pages = new Map<string, string>();
  for (const name of globSync("{README,docs/*}.md", { cwd: root })) {
    const path = join(root, name);
    const page = readFileSync(path, "utf8").replace(
      /(<!-- generated: (.+) -->\n)[\s\S]*?(<!-- end -->)/g,
      (_, begin: string, part: string, end: string) => {
        const generate = parts[part];
        if (generate === undefined) throw new Error(`${path} has a part "${part}", which nothing generates.`);
        missing.delete(part);
        return `${begin}\n${generate()}\n\n${end}`;
      },
    );
    pages.set(path, page);
  }
  if (missing.size > 0) throw new Error(`No page has: ${[...missing].join(", ")}.`);
  return pages;
}

function settingsTable(
  settings: Readonly<
    Record<string, Pick<Setting<unknown>, "meaning" | "shownFallback"> & { fallback?: unknown }>
  >,
): string {
  const rows = Object.entries(settings).map(([name, { meaning, fallback, shownFallback }]) => [
    code(name),
    meaning,
    shownFallback ?? (typeof fallback === "string" && fallback !== "" ? code(fallback) : "none"),
  ]);
  return table("Variable | Meaning | Default", rows);
}

/** The problems whose first number is of this kind; null: those that have none. */
function problemRows(wanted: "status" | "exitCode" | null): readonly (readonly string[])[] {
  return Object.entries(problems).flatMap(([name, problem]) => {
    const { status, exitCode }: { title: string; status?: number; exitCode?: number } = problem;
    const kind = status ? "status" : exitCode ? "exitCode" : null;
    const number = status ?? exitCode;
    return kind === wanted ? [[code(name), ...(number ? [String(number)] : []), problem.title]] : [];
  });
}

function callRow(row: Call): readonly string[] {
  const isTold = (member: string) => placeOf(row, member) !== "path" && member !== "within";
  const members = Object.keys(row.takes).filter(isTold).map(code).join(", ");
  const path = `/api${row.path.replaceAll(/:(\w+)/g, "{$1}")}`;
  return [
    code(`${row.method} ${path}`),
    row.right,
    members === "" ? row.does : `${row.does}; takes ${members}`,
  ];
}

function formRow(name: GitHost): readonly string[] {
  const values = { payloadUrl: "the payload URL", secret: `the value of ${code("WEBHOOK_SECRET")}` };
  const { host, way, fields, afterwards, makesSecret } = webhookForm(name, null, values);
  const secret = makesSecret ? `${host} makes the secret: set ${code("WEBHOOK_SECRET")} to it. ` : "";
  return [
    host,
    way,
    fields.map(([label, value]) => `*${label}*: ${value}`).join("<br>"),
    secret + afterwards,
  ];
}

/** The help of each command that does something itself, as a terminal of 80 columns shows it. */
async function commandHelps(): Promise<Record<string, () => string>> {
  const program = await loadProgram({ env: {}, finish: () => {} });
  return Object.fromEntries(program.commands.map((one) => [`hotpush ${one.name()}`, () => helpOf(one)]));
}

function helpOf(command: Command): string {
  const written: string[] = [];
  command.configureOutput({ writeOut: (text) => written.push(text), getOutHelpWidth: () => 80 });
  command.outputHelp();
  const text = written
    .join("")
    .replace(/(?:^Options:\n)? +-h, --help .*\n/m, "")
    .replace(/\n{3,}/g, "\n\n");
  return fence([text.trimEnd()]);
}

function table(head: string, rows: readonly (readonly string[])[]): string {
  const lines = rows.map((cells) => `| ${cells.join(" | ")} |`);
  return [`| ${head} |`, head.replaceAll(/[^|]+/g, "---").replace(/.*/, "|$&|"), ...lines].join("\n");
}

function fence(lines: readonly string[]): string {
  return ["```", ...lines, "```"].join("\n");
}

function code(text: string): string {
  return `\`${text}\``;
}

if (import.meta.main) {
  for (const [path, page] of generateDocs()) {
    if (readFileSync(path, "utf8") === page) continue;
    if (process.argv[2] !== "--check") writeFileSync(path, page);
    else {
      console.error(`${path} is not as the code has it. Run: npm run docs`);
      process.exitCode = 1;
    }
  }
}
