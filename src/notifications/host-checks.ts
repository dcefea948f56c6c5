import * as v from "valibot";
import { gitHosts } from "#config/git-hosts";
import type { CommitStatus } from "#config/project";
import type { Check, ChecksReading } from "#deployments/checks";
import type { JsonObject } from "#deployments/push";
import { attempt } from "#platform/files";
import type { HttpAnswer } from "#platform/http";
import { askRepository } from "./commit-status.ts";
import { failure, sendOutcomeOf } from "./outcome.ts";

/** A list of checks in the API of a git host. */
interface CheckList {
  /** Below the address of the repository, up to what names the page. */
  readonly path: (commit: string, branch: string) => string;
  /** The member of the answer that has the rows; without it, the answer is an array of them. */
  readonly member?: string;
  /** Reads a row; null: it is no check. */
  readonly row: v.GenericSchema<unknown, Check | null>;
  /** Whether another page may follow. Without it: if this one is full. */
  readonly hasMore?: (rows: number, answer: { readonly next?: unknown }) => boolean;
  /** Whether a later row of the same name replaces an earlier one. */
  readonly isLastOfName?: true;
}

/** How the API of a kind of git host lists the checks of a commit. */
interface HostChecks {
  /** What the token of commit statuses needs besides. */
  readonly right: string;
  readonly lists: readonly CheckList[];
}

export const perPage = 100;
/** A name that is cut equals none in DEPLOY_AFTER. */
export const maxNameChars = 255;
const name = v.pipe(
  v.string(),
  v.transform((whole) => (whole.length > maxNameChars ? `${whole.slice(0, maxNameChars)}…` : whole)),
);
const text = v.nullish(name, "");

/** GitHub's words of check runs and of statuses, and Gitea's. What is not known is no success. */
const words: Readonly<Record<string, Check["state"]>> = {
  success: "succeeded",
  neutral: "succeeded",
  skipped: "skipped",
  pending: "pending",
  expected: "pending",
};
const wordOf = (word: string): Check["state"] => words[word] ?? "failed";

function rowOf<Members extends v.ObjectEntries>(
  members: Members,
  read: (row: v.InferOutput<v.ObjectSchema<Members, undefined>>) => Check | null,
): CheckList["row"] {
  return v.pipe(v.object(members), v.transform(read));
}

const status = rowOf({ context: name, state: text, status: text }, ({ context, state, status }) => ({
  names: [context],
  state: wordOf(state || status),
}));

const run = rowOf({ name, status: name, conclusion: text }, (row) => ({
  names: [row.name],
  state: row.status === "completed" ? wordOf(row.conclusion) : "pending",
}));

const app = v.nullish(v.object({ slug: text }));
const count = v.number();
const suite = rowOf({ status: text, conclusion: text, latest_check_runs_count: count, app }, (row) => {
  const slug = row.app?.slug || "a suite";
  const isEmpty = row.latest_check_runs_count === 0;
  const isEnded = row.status === "completed";
  if (isEmpty ? slug !== "github-actions" : isEnded) return null;
  return {
    names: [`the rest of ${slug}`],
    state: isEnded ? wordOf(row.conclusion) : "pending",
    isGroup: true,
  };
});

const isOptional = v.nullish(v.boolean(), false);
const job = rowOf({ name, status: name, allow_failure: isOptional }, (row) => ({
  names: [row.name],
  state: jobState(row.status, row.allow_failure),
}));

const buildStates: Readonly<Record<string, Check["state"]>> = {
  SUCCESSFUL: "succeeded",
  INPROGRESS: "pending",
};
const build = rowOf({ key: name, name: text, state: name }, (row) => ({
  names: [row.name || row.key, row.key],
  state: buildStates[row.state] ?? "failed",
}));

const gitea: HostChecks = {
  right: "permission repository: Read and write",
  lists: [
    {
      path: (commit) => `/commits/${commit}/status?limit=50`,
      member: "statuses",
      row: status,
      // Its owner chooses how long a page is at most.
      hasMore: (rows) => rows > 0,
    },
  ],
};

const hostChecks: Readonly<Record<CommitStatus["host"], HostChecks>> = {
  gitea,
  forgejo: gitea,
  // A workflow makes the runs of its later jobs only when the earlier ones have ended: until then, its suite has not. Without any
  // run, a workflow waits for its turn, or its file is wrong; an app does not check this repository, and stays queued for ever.
  github: {
    right: "scope repo of a classic token, if the repository is private",
    lists: [
      githubList("check-suites?", "check_suites", suite),
      githubList("check-runs?filter=latest&", "check_runs", run),
      githubList("status?", "statuses", status),
    ],
  },
  // The jobs of its pipelines, the older pipeline first, and what other programs report, of each the last try. A pipeline has all its
  // jobs from the start.
  gitlab: {
    right: "scope api, role Developer",
    lists: [
      {
        path: (commit, branch) =>
          `/repository/commits/${commit}/statuses?ref=${encodeURIComponent(branch)}&per_page=${perPage}`,
        row: job,
        isLastOfName: true,
      },
    ],
  },
  "bitbucket-cloud": {
    right: "Repositories: Read",
    lists: [
      {
        path: (commit) => `/commit/${commit}/statuses?pagelen=${perPage}`,
        member: "values",
        row: build,
        hasMore: (_, { next }) => next !== undefined,
      },
    ],
  },
};

function githubList(what: string, member: string, row: CheckList["row"]): CheckList {
  return { path: (commit) => `/commits/${commit}/${what}per_page=${perPage}`, member, row };
}

function jobState(status: string, isOptional: boolean): Check["state"] {
  if (status === "success") return "succeeded";
  if (status === "skipped") return "skipped";
  const isEnded = status === "failed" || status === "canceled";
  if (isOptional && (isEnded || status === "manual")) return "skipped";
  return isEnded ? "failed" : "pending";
}

export const mostPages = 20;
const longestAnswerBytes = 4 * 1024 ** 2;
/** A host that asks for more patience than that is asked all the same. */
const longestWaitMs = 15 * 60_000;

/** Asks the git host for the checks of a commit, with the token of commit statuses. Never rejects. */
export async function readHostChecks(
  settings: CommitStatus,
  commit: string,
  branch: string,
  signal: AbortSignal,
): Promise<ChecksReading> {
  const checks: Check[] = [];
  for (const list of hostChecks[settings.host].lists) {
    const listed: Check[] = [];
    let hasMore = true;
    for (let page = 1; hasMore; page += 1) {
      if (page > mostPages)
        return { kind: "fault", fault: "the commit has too many.", waitMs: longestWaitMs };
      const read = await readPage(settings, `${list.path(commit, branch)}&page=${page}`, list, signal);
      if ("fault" in read) return { kind: "fault", ...read };
      listed.push(...read.checks);
      hasMore = read.hasMore;
    }
    const lastOfName = () => new Map(listed.map((check) => [check.names[0], check])).values();
    checks.push(...(list.isLastOfName ? lastOfName() : listed));
  }
  return { kind: "checks", checks };
}

type Fault = Omit<Extract<ChecksReading, { readonly kind: "fault" }>, "kind">;

async function readPage(
  settings: CommitStatus,
  path: string,
  { member, row, hasMore = (rows) => rows === perPage }: CheckList,
  signal: AbortSignal,
): Promise<{ readonly checks: readonly Check[]; readonly hasMore: boolean } | Fault> {
  const { title } = gitHosts[settings.host];
  try {
    const options = { signal, longestBytes: longestAnswerBytes };
    const answer = await askRepository(settings, "GET", path, undefined, options);
    if (answer.status !== 200) return faultOf(settings, answer);
    const body = parsed(answer.body);
    const { success, output } = v.safeParse(rowsOf(row), member ? body[member] : body);
    const fault = `${settings.url.host} answered something that is not ${title}'s API. Check COMMIT_STATUS_URL, and whether a proxy or a sign-in page is in front of it.`;
    if (!success) return { fault, waitMs: 0 };
    const rows = output ?? [];
    return { checks: rows.filter((one) => one !== null), hasMore: hasMore(rows.length, body) };
  } catch (error) {
    return { fault: `${title} did not answer: ${failure(error).fault}. It is asked again.`, waitMs: 0 };
  }
}

/** No host sends more than was asked for. The list of a commit without statuses is null at Gitea. */
function rowsOf(row: CheckList["row"]) {
  return v.nullable(v.pipe(v.array(row), v.maxLength(perPage)));
}

function faultOf(settings: CommitStatus, answer: HttpAnswer): Fault {
  const { status, headers } = answer;
  const { title } = gitHosts[settings.host];
  const { right } = hostChecks[settings.host];
  const outcome = sendOutcomeOf(answer);
  const saidMs = outcome.kind === "failed" ? (outcome.waitMs ?? 0) : 0;
  const waitMs = Math.min(saidMs, longestWaitMs);
  const isLimited = status === 429 || saidMs > 0 || headers["x-ratelimit-remaining"] === "0";
  if (isLimited && (status === 429 || status === 403))
    return { fault: `${title} has had too many requests (${status}).`, waitMs: waitMs || limitedWaitMs };
  const texts: Readonly<Record<number, string>> = {
    301: `${title} has moved the repository. Give COMMIT_STATUS_URL its new address`,
    401: `${title} does not accept the token. Put a new one into the file that COMMIT_STATUS_TOKEN_FILE names`,
    403: `the token may not read them at ${title}. Give it the right: ${right}`,
    404: `${title} has no such commit, or the token does not show it. Check COMMIT_STATUS_URL, and that the token has the right: ${right}`,
  };
  return { fault: `${texts[status] ?? `${title} could not say. It is asked again`} (${status}).`, waitMs };
}

/** GitHub does not always say how long. */
const limitedWaitMs = 60_000;

function parsed(body: Buffer): JsonObject {
  return attempt(() => Object(JSON.parse(body.toString())), {});
}
