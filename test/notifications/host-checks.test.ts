import assert from "node:assert/strict";
import { test } from "node:test";
import { statusHosts } from "../../src/config/git-hosts.ts";
import type { CommitStatus } from "../../src/config/project.ts";
import { makeSecret } from "../../src/config/secret.ts";
import type { Check } from "../../src/deployments/checks.ts";
import { readHostChecks } from "../../src/notifications/host-checks.ts";
import { startTarget } from "../harness/listen.ts";
import { commitOf } from "../harness/store.ts";

const commit = commitOf("one");
type State = Check["state"];

/** What a host documents: its answers by path, cut to members that are read and some that are not, and what they mean. */
interface Documented {
  readonly header: readonly [name: string, value: string];
  /** Pages of answers, by the path without what names the page. */
  readonly answers: Readonly<Record<string, readonly object[]>>;
  readonly checks: readonly (readonly [name: string, state: State])[];
}

const githubPath = `/git/api/v3/repos/octo/app/commits/${commit}`;
const giteaPath = `/git/api/v1/repos/octo/app/commits/${commit}`;
const runs = [
  ["success", "succeeded"],
  ["neutral", "succeeded"],
  ["skipped", "skipped"],
  ["failure", "failed"],
  ["action_required", "failed"],
] as const;
const matrix = Array.from({ length: 100 }, (_, index) => `matrix (${index})`);
function suiteOf(status: string, count: number, slug = "github-actions", conclusion: string | null = null) {
  const app = { id: 1, slug };
  return { id: 5, head_sha: commit, status, conclusion, app, latest_check_runs_count: count };
}
function runOf(name: string, status: string, conclusion: string | null) {
  return { id: 4, name, head_sha: commit, status, conclusion };
}
/** GitLab's. */
const jobs = [
  ["rubocop", "success", false, "succeeded"],
  ["rspec", "running", false, "pending"],
  ["package", "created", false, "pending"],
  ["flaky", "failed", true, "skipped"],
  ["review", "manual", true, "skipped"],
  ["release", "manual", false, "pending"],
  ["docs", "skipped", false, "skipped"],
  ["old", "canceled", false, "failed"],
  ["unit", "failed", false, "failed"],
  ["bundler:audit", "pending", null, "pending"],
] as const;
const giteaLike: Documented = {
  header: ["authorization", "token a-token-of-a-host"],
  answers: {
    [`${giteaPath}/status?limit=50`]: [
      {
        state: "failure",
        statuses: [
          { id: 1, status: "success", context: "ci / build (push)" },
          { id: 2, status: "pending", context: "ci / test (push)" },
          { id: 3, status: "warning", context: "lint" },
        ],
      },
      // The owner of the host may choose shorter pages than were asked for.
      { state: "failure", sha: commit, total_count: 1, statuses: [{ status: "error", context: "e2e" }] },
      { state: "", sha: "", total_count: 0, statuses: null },
    ],
  },
  checks: [
    ["ci / build (push)", "succeeded"],
    ["ci / test (push)", "pending"],
    ["lint", "failed"],
    ["e2e", "failed"],
  ],
};

const documented: Readonly<Record<CommitStatus["host"], Documented>> = {
  github: {
    header: ["authorization", "Bearer a-token-of-a-host"],
    answers: {
      [`${githubPath}/check-suites?per_page=100`]: [
        {
          total_count: 3,
          check_suites: [
            suiteOf("in_progress", 2),
            suiteOf("queued", 0, "dependabot"),
            suiteOf("queued", 0),
            suiteOf("completed", 0, "github-actions", "startup_failure"),
            suiteOf("completed", 1),
          ],
        },
      ],
      [`${githubPath}/check-runs?filter=latest&per_page=100`]: [
        { total_count: 107, check_runs: matrix.map((name) => runOf(name, "completed", "success")) },
        {
          total_count: 107,
          check_runs: [
            ...runs.map(([conclusion]) => runOf(conclusion, "completed", conclusion)),
            runOf("test", "in_progress", null),
            runOf("late", "queued", null),
          ],
        },
      ],
      [`${githubPath}/status?per_page=100`]: [
        {
          state: "success",
          statuses: [
            { context: "continuous-integration/jenkins", state: "success" },
            { context: "security/brakeman", state: "error" },
          ],
        },
      ],
    },
    checks: [
      ["the rest of github-actions", "pending"],
      ["the rest of github-actions", "pending"],
      ["the rest of github-actions", "failed"],
      ...matrix.map((name) => [name, "succeeded"] as const),
      ...runs,
      ["test", "pending"],
      ["late", "pending"],
      ["continuous-integration/jenkins", "succeeded"],
      ["security/brakeman", "failed"],
    ],
  },
  gitea: giteaLike,
  forgejo: giteaLike,
  gitlab: {
    header: ["private-token", "a-token-of-a-host"],
    answers: {
      [`/api/v4/projects/git%2Focto%2Fapp/repository/commits/${commit}/statuses?ref=main&per_page=100`]: [
        [
          // Of an older pipeline for the same commit.
          { id: 90, sha: commit, name: "rubocop", status: "failed", allow_failure: false },
          ...jobs.map(([name, status, allow_failure]) => ({
            id: 91,
            sha: commit,
            name,
            status,
            allow_failure,
          })),
        ],
      ],
    },
    checks: jobs.map(([name, , , state]) => [name, state]),
  },
  "bitbucket-cloud": {
    header: ["authorization", "Bearer a-token-of-a-host"],
    answers: {
      [`/git/2.0/repositories/octo/app/commit/${commit}/statuses?pagelen=100`]: [
        {
          pagelen: 2,
          values: [
            { type: "build", key: "-1234", name: "Pipeline #7 for main", state: "SUCCESSFUL" },
            { type: "build", key: "jenkins", name: null, state: "INPROGRESS" },
          ],
          next: "https://api.bitbucket.org/2.0/…?page=2",
        },
        {
          values: [
            { type: "build", key: "sonar", name: "Sonar", state: "FAILED" },
            { type: "build", key: "stopped", state: "STOPPED" },
          ],
        },
      ],
    },
    checks: [
      ["Pipeline #7 for main", "succeeded"],
      ["jenkins", "pending"],
      ["Sonar", "failed"],
      ["stopped", "failed"],
    ],
  },
};

for (const host of statusHosts) {
  const { header, answers, checks } = documented[host];

  test(`${host}'s checks are read from all its lists, page by page`, async (t) => {
    const server = await startTarget(t, (response, { path }) => {
      const [, list = "", page = ""] = /^(.+)&page=(\d+)$/.exec(path) ?? [];
      const answer = answers[list]?.[Number(page) - 1];
      response.writeHead(answer === undefined ? 501 : 200).end(JSON.stringify(answer ?? path));
    });
    const reading = await read(host, server);
    assert.ok(reading.kind === "checks", JSON.stringify(reading));
    const found = reading.checks.map(({ names, state }) => [names[0], state] as const);
    assert.deepEqual(found, checks);
    const groups = reading.checks.filter(({ isGroup }) => isGroup).map(({ names }) => names[0]);
    assert.deepEqual(new Set(groups), new Set(host === "github" ? ["the rest of github-actions"] : []));
    for (const { method, headers, text } of server.requests) {
      assert.deepEqual([method, text, headers[header[0]]], ["GET", "", header[1]]);
    }
  });

  test(`${host}'s refusals are named with their fix, and its patience is respected`, async (t) => {
    for (const [status, headers, fault, waitMs] of [
      [401, {}, /does not accept the token\. .*COMMIT_STATUS_TOKEN_FILE.*\(401\)/, 0],
      [403, {}, /may not read them .* the right: \S.+\(403\)/, 0],
      [403, { "x-ratelimit-remaining": "0" }, /too many requests \(403\)/, 60_000],
      [404, {}, /no such commit.*COMMIT_STATUS_URL.*\(404\)/, 0],
      [301, { location: "/" }, /has moved the repository.*\(301\)/, 0],
      [429, { "retry-after": "7" }, /too many requests \(429\)/, 7_000],
      [429, { "retry-after": "86400" }, /too many requests/, 15 * 60_000],
      [503, { "retry-after": "3" }, /could not say.*\(503\)/, 3_000],
    ] as const) {
      const server = await startTarget(t, (response) => void response.writeHead(status, headers).end("{}"));
      const reading = await read(host, server);
      assert.ok(reading.kind === "fault");
      assert.match(reading.fault.replace(/^(.*) \((\d+)\)\.$/, "$1 ($2)"), fault);
      assert.equal(reading.waitMs, waitMs, String(status));
      assert.doesNotMatch(reading.fault, /a-token-of-a-host/);
    }
  });

  test(`what is not ${host}'s API is no green check`, async (t) => {
    for (const text of ["<html>Sign in</html>", "{}", "[1]", '{"statuses":[{}]}', "null", '"']) {
      const server = await startTarget(t, (response) => void response.writeHead(200).end(text));
      const reading = await read(host, server);
      assert.equal(reading.kind, "fault", text);
    }
  });
}

test("a host that hangs, or is not there, is a fault and no green check", async (t) => {
  const hanging = await startTarget(t, () => {});
  const asked = new AbortController();
  const reading = read("github", hanging, asked.signal);
  while (hanging.requests.length === 0) await new Promise(setImmediate);
  asked.abort();
  assert.equal((await reading).kind, "fault");
  assert.equal((await read("gitea", { url: "http://127.0.0.1:1" })).kind, "fault");
});

test("a host whose list never ends is asked for 20 pages, and then is a fault", async (t) => {
  const statuses = [{ context: "again", status: "success" }];
  const text = JSON.stringify({ statuses });
  const server = await startTarget(t, (response) => void response.writeHead(200).end(text));
  assert.equal((await read("gitea", server)).kind, "fault");
  assert.equal(server.requests.length, 20);
});

test("a host's names are cut, and more rows than were asked for are a fault", async (t) => {
  const whole = "x".repeat(255);
  const statuses = [{ context: `${whole}${"x".repeat(600_000)}`, status: "success" }];
  const pages = [{ statuses }, { statuses: [] }];
  const long = await startTarget(t, (response, { path }) => {
    response.writeHead(200).end(JSON.stringify(pages[Number(path.at(-1)) - 1]));
  });
  const reading = await read("gitea", long);
  assert.ok(reading.kind === "checks");
  assert.deepEqual(reading.checks[0]?.names, [`${whole}…`]);
  const rows = JSON.stringify({ statuses: Array(101).fill({ context: "a", status: "success" }) });
  const many = await startTarget(t, (response) => void response.writeHead(200).end(rows));
  assert.equal((await read("gitea", many)).kind, "fault");
});

type Asked = Pick<Awaited<ReturnType<typeof startTarget>>, "url">;

function read(host: CommitStatus["host"], { url }: Asked, signal = new AbortController().signal) {
  const settings = { host, url: new URL(`${url}/git/octo/app`), token: makeSecret("a-token-of-a-host") };
  return readHostChecks(settings, commit, "main", signal);
}
