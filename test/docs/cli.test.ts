import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import type { Command } from "commander";
import { loadProgram } from "../../src/cli/commands.ts";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, hotpushJson, startAnswering } from "../harness/hotpush.ts";
import { letGo } from "../harness/script.ts";

const page = readFileSync(new URL("../../docs/cli.md", import.meta.url), "utf8");
const oldSecret = "the secret that was before this one, 2025";
const script = `#!/bin/sh
echo "==> Build"
while [ -d "$REPO_PATH" ] && [ ! -e "$REPO_PATH/go" ]; do sleep 0.02; done
exit 1
`;

test("docs/cli.md has every command with an example, and names each of its options", async () => {
  const program = await loadProgram({ env: {}, finish: () => {} });
  for (const [trail, { options, commands }] of commandsBelow(program)) {
    const section = sectionOf(`\`hotpush${trail}\``);
    assert.ok(commands.length > 0 || section.includes(`\nhotpush${trail}`), `an example of hotpush${trail}`);
    for (const { long } of options) assert.ok(section.includes(`${long}`), `${long} of hotpush${trail}`);
  }
});

test("docs/cli.md has no heading twice: a link to it leads to one place", () => {
  const headings: readonly string[] = page.match(/^#+ .*$/gm) ?? [];
  assert.deepEqual(
    headings.filter((heading, index) => headings.indexOf(heading) !== index),
    [],
  );
});

test("docs/cli.md has every member of what --json prints, and no other", async (t) => {
  const service = await startAnswering(t, { script, env: { WEBHOOK_SECRET_PREVIOUS: oldSecret } });
  for (const ref of ["refs/heads/main", "refs/heads/master"]) await deliver(service.url, githubPush({ ref }));
  await service.log.waitFor(({ event }) => event === "deployment.step");
  const status = await hotpushJson<{ running: Answer }>(service, "status");
  assert.deepEqual(membersOf(status).sort(), documented("status"));
  assert.deepEqual(Object.keys(status.running.deployment as object).sort(), documented("a deployment"));
  assert.deepEqual(Object.keys(status.running.step as object).sort(), documented("a step"));
  letGo(service.repoPath);
  await service.log.waitForEnding(2);
  const { deployments } = await hotpushJson<{ deployments: Answer[] }>(service, "history");
  for (const one of deployments) assert.deepEqual(Object.keys(one).sort(), documented("a deployment"));
  assert.deepEqual(Object.keys(deployments[0]?.problem as object), ["code", "title", "detail"]);
});

test("docs/cli.md has every member of a project and of a pause", async (t) => {
  const service = await startAnswering(t);
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { paused } = await hotpushJson<{ paused: object }>(service, "pause", "--reason", "a test");
  assert.deepEqual(Object.keys(paused).sort(), documented("a pause"));
  const { projects } = await hotpushJson<{ projects: object[] }>(service, "projects");
  assert.deepEqual(membersOf({ ...projects[0], last: null, paused: null }).sort(), documented("a project"));
});

test("docs/cli.md has every event of logs --json", async (t) => {
  const service = await startAnswering(t);
  await deliver(service.url, githubPush());
  await service.log.waitForEnding(1);
  const { stdout } = await hotpush(service, "logs", "1", "--json");
  const printed = stdout.trimEnd().split("\n");
  const shapes = new Set(printed.map((line) => JSON.parse(line) as { event: string }).map(shapeOf));
  const rows = [...page.matchAll(/^\| `\{"event": "(\w+)", (.*)\}` \|/gm)].map(
    ([, event, members = ""]) => `${event} ${members.replaceAll(/"|: …|,/g, "")}`,
  );
  assert.deepEqual([...shapes, "skipped lines"].sort(), rows.sort());
});

function commandsBelow(command: Command, before = ""): readonly (readonly [trail: string, Command])[] {
  return command.commands.flatMap((one) => {
    const trail = `${before} ${one.name()}`;
    return [[trail, one] as const, ...commandsBelow(one, trail)];
  });
}

type Answer = Readonly<Record<string, unknown>>;

function shapeOf({ event, ...rest }: { event: string }): string {
  return `${event} ${Object.keys(rest).join(" ")}`;
}

/** The text below a heading, up to the next one. */
function sectionOf(heading: string): string {
  const [, section] = page.split(`\n### ${heading}\n`);
  assert.ok(section !== undefined, `docs/cli.md has no section ${heading}`);
  return section.split(/\n##+ /)[0] ?? "";
}

/** The members in the table of `what`, sorted. */
function documented(what: string): readonly string[] {
  const table =
    page.split(`| Member of ${what === "status" ? "the status" : what} |`)[1]?.split("\n\n")[0] ?? "";
  return [...table.matchAll(/^\| (.+?) \|/gm)]
    .flatMap(([, cell = ""]) => [...cell.matchAll(/`([\w.]+)`/g)].map(([, name = ""]) => name))
    .sort();
}

/** Its members, and those of the objects in it that have no table of their own. */
function membersOf(value: object, path = ""): string[] {
  return Object.entries(value).flatMap(([name, member]) => {
    const isPlain = typeof member === "object" && member !== null && !Array.isArray(member);
    const hasTable = name === "deployment" || name === "step";
    if (!isPlain || hasTable) return [`${path}${name}`];
    const inner = membersOf(member as object, `${path}${name}.`);
    return page.includes(`\`${path}${name}\``) ? [`${path}${name}`, ...inner] : inner;
  });
}
