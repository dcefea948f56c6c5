import type { DeploymentJson, ProjectJson, StepJson } from "../../src/calls/shapes.ts";
import type { SiteRequests } from "../../src/site-requests.ts";

const second = 1_000;
const minute = 60 * second;
const hour = 60 * minute;
const day = 24 * hour;
const nowMs = Date.now();

/** A deployment as `hotpush run` describes one; everything that is not given is usual. */
export function cannedDeployment(
  given: Partial<DeploymentJson> & { readonly agoMs?: number; readonly tookMs?: number } = {},
): DeploymentJson {
  const { agoMs = hour, tookMs = 18_200, ...own } = given;
  const startedAtMs = nowMs - agoMs;
  const isOver = !["queued", "running"].includes(own.state ?? "succeeded");
  return {
    id: 48,
    project: "shop",
    trigger: "push",
    ref: "refs/heads/main",
    before: null,
    commit: commitAt(own.id ?? 48),
    checkedOutCommit: null,
    subject: "Show prices with tax",
    author: "Ada Park",
    pusher: { name: "ada" },
    requestedBy: null,
    cancelledBy: null,
    repository: "acme/shop",
    host: "github",
    deliveryId: null,
    state: "succeeded",
    attempts: 1,
    supersededBy: null,
    exitCode: isOver ? 0 : null,
    problem: null,
    skipReason: null,
    waitReason: null,
    requests: null,
    createdAt: iso(startedAtMs - 40),
    startedAt: iso(startedAtMs),
    liveAt: isOver ? iso(startedAtMs + tookMs * 0.7) : null,
    finishedAt: isOver ? iso(startedAtMs + tookMs) : null,
    durationMs: isOver ? tookMs : null,
    ...own,
  };
}

/** A commit that is always the same for one number. */
function commitAt(number: number): string {
  const seeds = Array.from({ length: 5 }, (_, index) => (number * 2_654_435_761 + index * 40_503_271) >>> 0);
  return seeds.map((seed) => seed.toString(16).padStart(8, "0")).join("");
}

function iso(ms: number): string {
  return new Date(ms).toISOString();
}

const subjects = [
  "Show prices with tax",
  "Fix the feed of drafts",
  "Cache the search index",
  "Send receipts by mail",
  "Use the new queue client",
  "Trim the image of the worker",
  "Let a cart outlive its session",
  "Round totals once, at the end",
  "Rewrite the quick start",
  "Drop support for the old export",
];
const people = ["Ada Park", "Ben Okafor", "Chiara Rossi"];

interface Past {
  readonly project: string;
  readonly count: number;
  readonly tookMs: number;
  readonly failedAt?: readonly number[];
  readonly skippedAt?: readonly number[];
  readonly newestAgoMs: number;
}

interface Moment {
  readonly past: Past;
  /** 0: the newest of its project. */
  readonly index: number;
  readonly agoMs: number;
}

/** What was deployed of some projects, the newest first. Numbers and times follow each other, as they do on a server. */
export function cannedHistories(newestId: number, pasts: readonly Past[]): readonly DeploymentJson[] {
  const moments = pasts.flatMap((past) =>
    Array.from({ length: past.count }, (_, index): Moment => {
      const agoMs = past.newestAgoMs + index * 7 * hour + ((index * 31) % 11) * 0.5 * hour;
      return { past, index, agoMs };
    }),
  );
  return moments
    .sort((one, other) => one.agoMs - other.agoMs)
    .map((moment, place) => pastDeployment(newestId - place, moment));
}

function pastDeployment(id: number, { past, index, agoMs }: Moment): DeploymentJson {
  const { project, tookMs, failedAt = [], skippedAt = [] } = past;
  const person = people[id % people.length] ?? "";
  const spread = 0.75 + (((id * 7_919) % 100) / 100) * 0.6;
  const common = {
    id,
    project,
    subject: subjects[id % subjects.length] ?? "",
    author: person,
    pusher: { name: person.split(" ")[0]?.toLowerCase() ?? "" },
    repository: `acme/${project}`,
    agoMs,
    tookMs: tookMs * spread,
  };
  if (failedAt.includes(index)) return cannedDeployment({ ...common, ...failure });
  if (skippedAt.includes(index))
    return cannedDeployment({ ...common, state: "skipped", tookMs: 0, skipReason: "[skip deploy]" });
  return cannedDeployment({ ...common, requests: cannedRequests(project, 3_000 + ((id * 977) % 9_000)) });
}

const failure: Parameters<typeof cannedDeployment>[0] = {
  state: "failed",
  exitCode: 1,
  liveAt: null,
  tookMs: 32_400,
  problem: {
    code: "script_failed",
    title: "The deploy script failed",
    detail: "Container api-web-8 was not healthy after 20 s, so the roll-out was abandoned.",
  },
};

function cannedRequests(project: string, requests: number): readonly SiteRequests[] {
  const before = Math.round(requests * 0.62);
  const after = requests - Math.round(requests * 0.62);
  return [
    {
      host: `${project}.example.com`,
      requests,
      failed: 0,
      brokeOff: 0,
      left: 0,
      before: { answers: before, serverErrors: 0 },
      after: { answers: after, serverErrors: 0 },
    },
  ];
}

const names = ["Pull", "Build", "Roll out", "Prune", "Health check"];
const lengths = [400, 9_800, 6_200, 1_100, 700];

/** The steps of a deployment, up to the one that runs or in which it failed; together they take as long as it does. */
export function cannedSteps({ startedAt, state, durationMs }: DeploymentJson): readonly StepJson[] {
  const count = state === "running" || state === "failed" ? 3 : names.length;
  const startMs = Date.parse(startedAt ?? iso(nowMs));
  let atMs = startMs;
  const usualMs = lengths.reduce((sum, length) => sum + length, 0);
  return names.slice(0, count).map((name, index) => {
    const isLast = index === count - 1;
    const usual = Math.round(
      (lengths[index] ?? 0) * (durationMs === null ? 1 : Math.min(1, durationMs / usualMs)),
    );
    const length = isLast && durationMs !== null ? startMs + durationMs - atMs : usual;
    const isRunning = state === "running" && isLast;
    const step = { attempt: 1, name, startedAt: iso(atMs), durationMs: isRunning ? null : length };
    atMs += length;
    return step;
  });
}

/** A project whose newest deployment is `last`. */
export function cannedProject(
  name: string,
  { last = null, ...own }: Partial<Omit<ProjectJson, "name">> = {},
): ProjectJson {
  const live = last?.state === "succeeded" ? liveOf(last) : null;
  return {
    name,
    repoPath: `/srv/${name}`,
    webUrl: `https://github.com/acme/${name}`,
    branches: ["main"],
    live,
    last,
    waiting: 0,
    paused: null,
    fault: null,
    missed: [],
    isServed: true,
    ...own,
  };
}

function liveOf({ commit, subject, author, liveAt }: DeploymentJson): NonNullable<ProjectJson["live"]> {
  return { commit, subject, author, since: liveAt };
}

/** Four projects, each of which is in a state of its own. */
export function cannedServer(): readonly {
  readonly project: ProjectJson;
  readonly deployments: readonly DeploymentJson[];
}[] {
  const all = cannedHistories(213, [
    { project: "shop", count: 60, tookMs: 18_200, newestAgoMs: 2 * hour, failedAt: [14] },
    { project: "blog", count: 44, tookMs: 6_100, newestAgoMs: 26.3 * hour, skippedAt: [3] },
    { project: "api", count: 60, tookMs: 31_000, newestAgoMs: 3.2 * hour, failedAt: [0, 19] },
    { project: "docs", count: 22, tookMs: 4_000, newestAgoMs: 12 * day, failedAt: [2] },
  ]);
  const [shop, blog, api, docs] = ["shop", "blog", "api", "docs"].map((name) =>
    all.filter(({ project }) => project === name),
  ) as [DeploymentJson[], DeploymentJson[], DeploymentJson[], DeploymentJson[]];
  const running = cannedDeployment({
    id: 214,
    state: "running",
    agoMs: 14 * second,
    subject: "Show the total in the cart",
    author: "Chiara Rossi",
    pusher: { name: "chiara" },
  });
  const lastShop = shop[0];
  const lastBlog = blog[0];
  const lastApi = api[0];
  const goodApi = api[1];
  const lastDocs = docs[0];
  if (!lastShop || !lastBlog || !lastApi || !goodApi || !lastDocs) throw new Error("a history is empty");
  const by = { name: "ben", reported: true } as const;
  const paused = { since: iso(nowMs - 5 * hour), reason: "the release notes come first", by };
  return [
    { project: cannedProject("api", { last: lastApi, live: liveOf(goodApi) }), deployments: api },
    { project: cannedProject("blog", { last: lastBlog }), deployments: blog },
    { project: cannedProject("docs", { last: lastDocs, paused, waiting: 2 }), deployments: docs },
    {
      project: cannedProject("shop", { last: running, live: liveOf(lastShop) }),
      deployments: [running, ...shop],
    },
  ];
}
