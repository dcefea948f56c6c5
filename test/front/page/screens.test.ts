import assert from "node:assert/strict";
import { test } from "node:test";
import {
  cannedDeployment,
  cannedHistories,
  cannedProject,
  cannedServer,
  cannedSteps,
} from "../../../demo/page/canned.ts";
import type { DeploymentJson, ProjectJson } from "../../../src/calls/shapes.ts";
import { deploymentScreen } from "../../../src/front/page/screens/deployment.ts";
import { projectScreen } from "../../../src/front/page/screens/project.ts";
import { projectLook, projectsScreen } from "../../../src/front/page/screens/projects.ts";
import { renderScreen, type Screen } from "../../../src/front/page/screens/screen.ts";
import {
  accountScreen,
  linkScreen,
  refusalScreen,
  signInScreen,
} from "../../../src/front/page/screens/sign-in.ts";
import { commitLink, isLive, liveVersion } from "../../../src/front/page/screens/words.ts";

const operator = { name: "Ann", isOperator: true, token: "t" };
const viewer = { ...operator, isOperator: false };
const hostile = `"><script>alert(1)</script><img src=x onerror="alert(1)">'</title>\u202e{{7*7}}&lt;`;

test("no text that somebody else wrote becomes markup, on any screen", async () => {
  for (const [name, screen] of Object.entries(screensOf(hostile))) {
    const text = await renderScreen(screen);
    assert.ok(text.includes("&lt;script&gt;"), `${name} shows it`);
    for (const tag of text.match(/<[a-z!/][^>]*>/gi) ?? []) {
      assert.doesNotMatch(tag, /^<(?:img|script(?! type="module" src="\/assets\/))/i, `${name}: ${tag}`);
      assert.doesNotMatch(tag.replaceAll(/"[^"]*"/g, ""), /\s(?:on\w+|style)=/i, `${name}: ${tag}`);
    }
  }
});

test("a project is shown as a run of an earlier version describes it, without its missed deliveries", async () => {
  const { missed: _, ...earlier } = cannedProject("shop");
  const history = { deployments: [], next: null };
  const shown = (project: object) =>
    renderScreen(projectScreen(operator, project as ProjectJson, history, new URLSearchParams()));
  assert.equal(await shown(earlier), await shown({ ...earlier, missed: [] }));
});

test("the tone of all projects is that of what runs, else of what failed, else of what is live", () => {
  const [api, blog, docs, shop] = cannedServer().map((one) => ({ ...one, steps: [] }));
  assert.ok(api && blog && docs && shop);
  const toneOf = (...cards: readonly (typeof api)[]) => projectsScreen(viewer, cards).tone;
  assert.deepEqual([toneOf(api, blog, shop), toneOf(api, blog), toneOf(blog)], ["busy", "bad", "good"]);
  assert.deepEqual([toneOf(blog, docs), toneOf()], ["idle", "idle"]);
});

test("a deployment is summed up in one sentence, whatever its state is", async () => {
  const last = cannedDeployment({ subject: "Show prices" });
  const sentences: readonly (readonly [Partial<DeploymentJson>, string])[] = [
    [{}, "“Show prices” is live."],
    [{ id: 3, commit: "0".repeat(40) }, "“Show prices” was deployed."],
    [{ state: "running", liveAt: null }, "“Show prices” is being deployed."],
    [{ state: "running" }, "“Show prices” is live, and is watched."],
    [{ state: "failed" }, "“Show prices” failed after 18.2 s. It had gone live before."],
    [
      { state: "cancelled", liveAt: null },
      `“Show prices” was cancelled. The last good version is ${last.commit.slice(0, 7)}.`,
    ],
    [{ state: "superseded", supersededBy: 49 }, "“Show prices” was superseded by deployment 49."],
    [{ subject: "x".repeat(200) }, `“${"x".repeat(71)}…” is live.`],
    [{ subject: null }, `“${last.commit.slice(0, 7)}” is live.`],
  ];
  for (const [given, expected] of sentences) {
    const text = await renderScreen(screenOf({ ...last, ...given }));
    assert.equal(/<h1[^>]*>.*?<span>(.*?)<\/span><\/h1>/.exec(text)?.[1], expected);
    const isOver = !["queued", "running"].includes(given.state ?? "");
    assert.equal(!text.includes('data-ended=""'), isOver, "its log goes on until it is over");
  }
});

test("a project is live only if its last deployment succeeded, and a version only if no later one had its requests", () => {
  const { live } = cannedProject("shop", { last: cannedDeployment() });
  const liveAt = new Date().toISOString();
  const table: readonly (readonly [Partial<DeploymentJson> | null, string, boolean])[] = [
    [null, "Live", true],
    [{ state: "succeeded", liveAt }, "Live", true],
    [{ state: "succeeded", liveAt: null }, "Live", true],
    [{ state: "queued", liveAt: null }, "Waiting", true],
    [{ state: "interrupted", liveAt: null }, "Waiting", true],
    [{ state: "interrupted", liveAt }, "Waiting", false],
    [{ state: "running", liveAt: null }, "Deploying", true],
    [{ state: "running", liveAt }, "Deploying", false],
    [{ state: "failed", liveAt: null }, "Failed", true],
    [{ state: "failed", liveAt }, "Failed", false],
    [{ state: "timed_out", liveAt: null }, "Failed", true],
    [{ state: "timed_out", liveAt }, "Failed", false],
    [{ state: "cancelled", liveAt: null }, "Cancelled", true],
    [{ state: "cancelled", liveAt }, "Cancelled", false],
  ];
  for (const [given, word, isKnown] of table) {
    const last = given && cannedDeployment({ id: 99, commit: "9".repeat(40), ...given });
    const project = cannedProject("shop", { live, last });
    const claim = JSON.stringify(given);
    assert.deepEqual([projectLook(project).word, liveVersion(project)], [word, isKnown ? live : null], claim);
    const before = cannedDeployment({ id: 98, commit: live?.commit ?? "" });
    assert.equal(isLive(before, project), isKnown, claim);
    if (last && last.state !== "succeeded") assert.equal(isLive(last, project), false, claim);
    assert.equal(projectLook({ ...project, live: null, last: null }).word, "Nothing deployed");
  }
});

test("only an operator sees buttons, and only those that make sense", async () => {
  const labels = async (screen: Screen) =>
    [...(await renderScreen(screen)).matchAll(/popovertarget="[^"]+" class="[^"]*">([^<]+)</g)].map(
      ([, label]) => label,
    );
  const live = cannedDeployment();
  const older = cannedDeployment({ id: 3 });
  assert.deepEqual(await labels(screenOf(live)), ["Deploy main again", "Roll back"]);
  assert.deepEqual(await labels(screenOf(older, live)), ["Deploy main again", "Roll back to this"]);
  assert.deepEqual(await labels(screenOf({ ...live, state: "failed" })), ["Deploy main again"]);
  assert.deepEqual(await labels(screenOf({ ...live, state: "running", finishedAt: null })), ["Cancel"]);
  assert.deepEqual(await labels(historyScreen(live, operator)), ["Deploy main", "Pause"]);
  for (const screen of [screenOf(live, live, viewer), historyScreen(live, viewer)])
    assert.deepEqual(await labels(screen), []);
});

test("a commit leads to its git host, and what is none leads nowhere", () => {
  const commit = "b".repeat(40);
  for (const [webUrl, host, path] of [
    ["https://github.com/o/r", "github", "commit"],
    ["https://git.example.org/o/r", "gitlab", "-/commit"],
    ["https://gitlab.com/o/r", null, "-/commit"],
    ["https://bitbucket.org/o/r", "bitbucket-cloud", "commits"],
    ["https://pagure.io/r", "pagure", "c"],
  ] as const)
    assert.equal(commitLink({ webUrl }, { host }, commit), `${webUrl}/${path}/${commit}`);
  assert.equal(commitLink({ webUrl: null }, { host: "github" }, commit), null);
  assert.equal(commitLink({ webUrl: "https://github.com/o/r" }, { host: "github" }, "main?x=<"), null);
});

test("the screen of a project names the repository of a push that was ignored", () => {
  const at = new Date().toISOString();
  const push = { kind: "ignored", project: "shop", at, host: "gitea", reason: "other_repository" } as const;
  const project = cannedProject("shop", { missed: [{ ...push, repository: "octo/store" }] });
  const { main } = projectScreen(operator, project, { deployments: [], next: null }, new URLSearchParams());
  assert.match(String(main), /A signed push of octo\/store was ignored \(other_repository\)/);
});

function screenOf(deployment: DeploymentJson, live = cannedDeployment(), who = operator): Screen {
  const project = cannedProject("shop", { last: live });
  const steps = cannedSteps(deployment);
  return deploymentScreen(who, { deployment, steps, logBytes: 0, project });
}

function historyScreen(last: DeploymentJson, who: typeof operator): Screen {
  const history = { deployments: [last], next: 3 };
  return projectScreen(who, cannedProject("shop", { last }), history, new URLSearchParams());
}

/** Each screen with `text` wherever somebody else may have written one. */
function screensOf(text: string): Readonly<Record<string, Screen>> {
  const allOf = (names: string) => Object.fromEntries(names.split(" ").map((name) => [name, text]));
  const person = { name: text, reported: true } as const;
  const answers = { answers: 1, serverErrors: 1 };
  const site = { requests: 2, failed: 1, brokeOff: 1, left: 1, before: answers, after: answers };
  const deployment: DeploymentJson = {
    ...cannedDeployment({ state: "failed" }),
    ...allOf("project ref commit checkedOutCommit subject author repository host skipReason"),
    pusher: { name: text },
    requestedBy: person,
    cancelledBy: person,
    problem: { code: text, title: text, detail: text },
    requests: [{ host: text, ...site }],
  };
  const steps = cannedSteps(deployment).map((step) => ({ ...step, name: text }));
  const live = { commit: text, subject: text, author: text, since: null };
  const paused = { since: new Date().toISOString(), reason: text, by: person };
  const missed = [
    { kind: "ignored", project: text, at: paused.since, host: text, reason: text, repository: text },
  ] as const;
  const of = { last: deployment, live, paused, missed, fault: text, branches: [text], repoPath: text };
  const project = cannedProject(text, of);
  const who = { ...operator, name: text };
  const deployments = [
    deployment,
    ...cannedHistories(9, [{ project: text, count: 3, tookMs: 9, newestAgoMs: 9 }]),
  ];
  const running = { ...project, last: { ...deployment, state: "running" } as const };
  const history = { deployments, next: 5 };
  return {
    projects: projectsScreen(who, [
      { project, deployments, steps },
      { project: running, deployments, steps },
    ]),
    project: projectScreen(who, project, history, new URLSearchParams({ state: text, before: "9" })),
    deployment: deploymentScreen(who, { deployment, steps, logBytes: 900, project }),
    account: accountScreen(who),
    link: linkScreen(text, text),
    refusedLink: signInScreen(text),
    refusal: refusalScreen(who, 503, text),
  };
}
