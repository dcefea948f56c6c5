import * as v from "valibot";
import { gitHosts } from "#config/git-hosts";
import type { CommitStatus } from "#config/project";
import type { Check, ChecksReading } from "#deployments/checks";
import type { HttpAnswer } from "#platform/http";
import { askRepository } from "./commit-status.ts";
import { failure, sendOutcomeOf } from "./outcome.ts";

/** A page of a list of checks. */
interface Page {
  readonly checks: readonly Check[];
  readonly isLast: boolean;
}

/** How the API of a kind of git host lists the checks of a commit, below the address of the repository. */
interface HostChecks {
  /** What the token of commit statuses needs besides. */
  readonly right: string;
  readonly lists: readonly {
    readonly path: (commit: string, branch: string, page: number) => string;
    readonly page: v.GenericSchema<unknown, Page>;
  }[];
}

const perPage = 100;
const noRows = v.pipe(
  v.null(),
  v.transform((): Page => ({ checks: [], isLast: true })),
);
const text = v.nullish(v.string(), "");
const page100 = (page: number) => `per_page=${perPage}&page=${page}`;

/** The schema of rows, each of which is a check or, with null, none. */
function rowsOf<Row>(
  row: v.GenericSchema<unknown, Row>,
  read: (row: Row) => Check | null,
  isLast = (rows: readonly Row[]) => rows.length < perPage,
) {
  const toPage = (rows: Row[]): Page => ({
    checks: rows.map(read).filter((one) => one !== null),
    isLast: isLast(rows),
  });
  return v.pipe(v.array(row), v.transform(toPage));
}

/** The schema of an object with such rows in the member `name`. */
function listOf(name: string, rows: v.GenericSchema<unknown, Page>): v.GenericSchema<unknown, Page> {
  return v.pipe(
    v.record(v.string(), v.unknown()),
    v.transform((whole) => whole[name]),
    rows,
  );
}

/** GitHub's words of check runs and of statuses, and Gitea's. What is not known is no success. */
const words: Readonly<Record<string, Check["state"]>> = {
  success: "succeeded",
  neutral: "succeeded",
  skipped: "skipped",
  pending: "pending",
  expected: "pending",
};
const wordOf = (word: string): Check["state"] => words[word] ?? "failed";

const statuses = v.object({ context: v.string(), state: text, status: text });
const readStatus = ({ context, state, status }: v.InferOutput<typeof statuses>): Check => ({
  names: [context],
  state: wordOf(state || status),
});

const run = v.object({ name: v.string(), status: v.string(), conclusion: text });
const readRun = ({ name, status, conclusion }: v.InferOutput<typeof run>): Check => ({
  names: [name],
  state: status === "completed" ? wordOf(conclusion) : "pending",
});

const suite = v.object({
  status: text,
  latest_check_runs_count: v.number(),
  app: v.nullish(v.object({ slug: text })),
});
function readSuite({ status, latest_check_runs_count: runs, app }: v.InferOutput<typeof suite>) {
  if (status === "completed" || runs === 0) return null;
  return { names: [`the rest of ${app?.slug || "a suite"}`], state: "pending", isGroup: true } as const;
}

const job = v.object({ name: v.string(), status: v.string(), allow_failure: v.nullish(v.boolean(), false) });
const readJob = ({ name, status, allow_failure: isOptional }: v.InferOutput<typeof job>): Check => ({
  names: [name],
  state: jobState(status, isOptional),
});

const build = v.object({ key: v.string(), name: text, state: v.string() });
const readBuild = ({ key, name, state }: v.InferOutput<typeof build>): Check => ({
  names: [name || key, key],
  state: state === "SUCCESSFUL" ? "succeeded" : state === "INPROGRESS" ? "pending" : "failed",
});

const gitea: HostChecks = {
  right: "permission repository: Read and write",
  lists: [
    {
      path: (commit, _, page) => `/commits/${commit}/status?limit=50&page=${page}`,
      // Its owner chooses how long a page is at most. Of a commit without statuses the list is null.
      page: listOf("statuses", v.union([rowsOf(statuses, readStatus, (rows) => rows.length === 0), noRows])),
    },
  ],
};

const hostChecks: Readonly<Record<CommitStatus["host"], HostChecks>> = {
  gitea,
  forgejo: gitea,
  // A workflow makes the runs of its later jobs only when the earlier ones have ended: until then, its suite has not. A suite
  // without runs is one of an app that does not check this repository, and stays queued for ever.
  github: {
    right: "Checks: Read-only, beside Commit statuses: Read and write",
    lists: [
      {
        path: (commit, _, page) => `/commits/${commit}/check-suites?${page100(page)}`,
        page: listOf("check_suites", rowsOf(suite, readSuite)),
      },
      {
        path: (commit, _, page) => `/commits/${commit}/check-runs?filter=latest&${page100(page)}`,
        page: listOf("check_runs", rowsOf(run, readRun)),
      },
      {
        path: (commit, _, page) => `/commits/${commit}/status?${page100(page)}`,
        page: listOf("statuses", rowsOf(statuses, readStatus)),
      },
    ],
  },
  // The jobs of its pipelines and what other programs report, of each the last try. A pipeline has all its jobs from the start.
  gitlab: {
    right: "scope api, role Developer",
    lists: [
      {
        path: (commit, branch, page) =>
          `/repository/commits/${commit}/statuses?ref=${encodeURIComponent(branch)}&${page100(page)}`,
        page: rowsOf(job, readJob),
      },
    ],
  },
  "bitbucket-cloud": {
    right: "Repositories: Read",
    lists: [
      {
        path: (commit, _, page) => `/commit/${commit}/statuses?pagelen=${perPage}&page=${page}`,
        page: v.pipe(
          v.object({ values: rowsOf(build, readBuild), next: v.optional(v.string()) }),
          v.transform(({ values, next }) => ({ ...values, isLast: next === undefined })),
        ),
      },
    ],
  },
};

function jobState(status: string, isOptional: boolean): Check["state"] {
  if (status === "success") return "succeeded";
  if (status === "skipped") return "skipped";
  const isEnded = status === "failed" || status === "canceled";
  if (isOptional && (isEnded || status === "manual")) return "skipped";
  return isEnded ? "failed" : "pending";
}

const mostPages = 20;
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
  for (const { path, page: schema } of hostChecks[settings.host].lists)
    for (let page = 1; ; page += 1) {
      const read = await readPage(settings, path(commit, branch, page), schema, signal);
      if ("fault" in read) return { kind: "fault", ...read };
      checks.push(...read.checks);
      if (read.isLast) break;
      if (page === mostPages)
        return { kind: "fault", fault: "the commit has too many.", waitMs: longestWaitMs };
    }
  return { kind: "checks", checks };
}

interface Fault {
  readonly fault: string;
  readonly waitMs: number;
}

async function readPage(
  settings: CommitStatus,
  path: string,
  schema: v.GenericSchema<unknown, Page>,
  signal: AbortSignal,
): Promise<Page | Fault> {
  const name = gitHosts[settings.host].title;
  try {
    const answer = await askRepository(settings, "GET", path, undefined, {
      signal,
      longestBytes: longestAnswerBytes,
    });
    if (answer.status !== 200) return faultOf(settings, answer);
    const { success, output } = v.safeParse(schema, parsed(answer.body));
    if (success) return output;
    const fault = `${settings.url.host} answered something that is not ${name}'s API. Check COMMIT_STATUS_URL, and whether a proxy or a sign-in page is in front of it.`;
    return { fault, waitMs: 0 };
  } catch (error) {
    return { fault: `${name} did not answer: ${failure(error).fault}. It is asked again.`, waitMs: 0 };
  }
}

function faultOf(settings: CommitStatus, answer: HttpAnswer): Fault {
  const { status, headers } = answer;
  const name = gitHosts[settings.host].title;
  const outcome = sendOutcomeOf(answer);
  const saidMs = outcome.kind === "failed" ? (outcome.waitMs ?? 0) : 0;
  const waitMs = Math.min(saidMs, longestWaitMs);
  const isLimited =
    status === 429 || (status === 403 && (saidMs > 0 || headers["x-ratelimit-remaining"] === "0"));
  const fault = (text: string) => ({ fault: `${text} (${status}).`, waitMs });
  if (isLimited) return { ...fault(`${name} has had too many requests`), waitMs: waitMs || limitedWaitMs };
  if (status === 401)
    return fault(
      `${name} does not accept the token. Put a new one into the file that COMMIT_STATUS_TOKEN_FILE names`,
    );
  const { right } = hostChecks[settings.host];
  if (status === 403) return fault(`the token may not read them at ${name}. Give it the right: ${right}`);
  if (status === 404)
    return fault(
      `${name} has no such commit, or the token does not show it. Check COMMIT_STATUS_URL, and that the token has the right: ${right}`,
    );
  if (status >= 300 && status < 400)
    return fault(`${name} has moved the repository. Give COMMIT_STATUS_URL its new address`);
  return fault(`${name} could not say. It is asked again`);
}

/** GitHub does not always say how long. */
const limitedWaitMs = 60_000;

function parsed(body: Buffer): unknown {
  try {
    return JSON.parse(body.toString());
  } catch {
    return null;
  }
}
