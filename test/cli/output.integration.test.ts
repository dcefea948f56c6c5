import assert from "node:assert/strict";
import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { snapshot, test } from "node:test";
import type { StatusJson } from "../../src/calls/shapes.ts";
import { readVersion } from "../../src/version.ts";
import { testSecret } from "../harness/delivery.ts";
import { hotpush, hotpushJson } from "../harness/hotpush.ts";
import { git, makeProject } from "../harness/repository.ts";
import { startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

snapshot.setDefaultSnapshotSerializers([(text) => String(text)]);

const script = `#!/bin/sh
echo "==> Build"
echo "built $1"
while [ -e "$REPO_PATH/wait" ]; do sleep 0.05; done
[ ! -e "$REPO_PATH/fail" ] || exit 3
`;

/** Command lines in their order, each against what those before it have left. `#` does something in between. */
const steps: readonly string[] = [
  "status",
  "history",
  "logs",
  "cancel",
  "rollback",
  "send --dry-run",
  "deploy",
  "deploy main --json",
  "# fail",
  "deploy main",
  "logs 1",
  "logs 1 --json",
  "logs -f 3",
  "history",
  "history --limit 1 --json",
  "status",
  "status --json",
  "pause --reason the-database-moves",
  "deploy --detach",
  "send --dry-run",
  "status",
  "cancel",
  "cancel 7 --json",
  "resume",
  "# wait",
  "deploy --detach",
  "# until it runs",
  "deploy --detach",
  "status",
  "status --json",
  "cancel 5",
  "# go on",
  "open",
  "open --name Ann",
  "open --token ci --deploy",
  "open --list",
  "open --list --json",
  "open --end 3",
  "open --end 3",
  "notify",
  "notify --test",
  "secret rotate",
  "secret rotate",
  "secret drop-previous",
  "secret drop-previous --force",
  "doctor branch repository",
  "doctor deploy-script --json",
  "completion fish",
  "upgrade",
  "remove",
  "--version",
  "depoly",
  "# end",
  "rollback",
];

test("what each command prints", async (t) => {
  const project = makeProject(t);
  project.script(script);
  git(project.repoPath, "remote", "set-url", "origin", project.remotePath);
  const env = { PAGE_URL: "https://hotpush.example.com", BRANCH: "main" };
  const service = await startService(t, { repoPath: project.repoPath, env });
  const settings = { WEBHOOK_SECRET: testSecret, WEBHOOK_PORT: service.port, REPO_PATH: project.repoPath };
  const lines = Object.entries({ ...settings, BRANCH: "main" }).map(([name, value]) => `${name}=${value}\n`);
  writeFileSync(join(project.repoPath, ".env"), lines.join(""), { mode: 0o600 });
  const target = {
    ...service,
    cwd: project.repoPath,
    env: { USER: "ada", HOME: temporaryDirectory(t), DOCKER_HOST: "unix:///nowhere/docker.sock" },
  };
  const file = (name: string) => join(project.repoPath, name);
  const between: Readonly<Record<string, () => unknown>> = {
    "# fail": () => writeFileSync(file("fail"), ""),
    "# wait": () => writeFileSync(file("wait"), ""),
    "# until it runs": () =>
      until("its step", async () => (await hotpushJson<StatusJson>(target, "status")).running?.step),
    "# go on": () => rmSync(file("wait")),
    "# end": () => service.end(),
  };
  const commit = git(project.repoPath, "rev-parse", "HEAD");
  const constant = makeConstant([
    ...[40, 12, 7].map((length) => [commit.slice(0, length), "<commit>"] as const),
    [join(project.repoPath, ".."), "/srv"],
    [service.statePath, "/state"],
    [target.env.HOME, "/home"],
    [`:${service.port}`, ":9000"],
    [`"port":${service.port}`, '"port":9000'],
    [readVersion(), "<version>"],
    [join(import.meta.dirname, "../.."), "/opt/hotpush"],
  ]);
  for (const [index, step] of steps.entries()) {
    if (step.startsWith("# ")) await between[step]?.();
    else
      await t.test(`${String(index).padStart(2, "0")}: hotpush ${step}`, async (t) => {
        const { code, stdout, stderr } = await hotpush(target, ...step.split(" "));
        const errors = stderr.replaceAll(/^(?=.)/gm, "! ");
        t.assert.snapshot(`\n${constant(stdout + errors)}(exit code ${code})\n`);
      });
  }
});

/** Makes what differs from run to run the same: commits, places, times, durations, widths of tables, credentials. */
function makeConstant(places: readonly (readonly [string, string])[]): (text: string) => string {
  return (text) =>
    places
      .reduce((all, [from, to]) => all.replaceAll(from, to), text)
      .replaceAll(/\d{4}-\d\d-\d\dT[\d:.]+Z|\d{4}-\d\d-\d\d \d\d:\d\d/g, "<time>")
      .replaceAll(/\b\d+(?:\.\d+)? (?:ms|s|min|h|days)\b(?: \d+ (?:s|min)\b)?/g, "<duration>")
      .replaceAll(/("\w+Ms"|"\w*[bB]ytes?"):\d+/g, "$1:0")
      .replaceAll(/hp[a-z]_[\w-]+/g, "<credential>")
      .replaceAll(/[\da-f]{8}(?:-[\da-f]{4}){3}-[\da-f]{12}/g, "<uuid>")
      .replaceAll(/(?<=\S) {2,}(?=\S)/g, "  ")
      .replaceAll(/──+/g, "──");
}

test("docs/cli.md explains each member of what --json prints", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const page = read("../../docs/cli.md") + read("../../docs/troubleshooting.md");
  const names = new Set(
    [...read("output.integration.test.ts.snapshot").matchAll(/"(\w+)":/g)].map(([, name]) => name),
  );
  const words = new Set([...page.matchAll(/`([^`\n]+)`/g)].flatMap(([, code = ""]) => code.split(/\W+/)));
  const missing = [...names].filter((name) => !words.has(name ?? ""));
  assert.deepEqual(missing, []);
});
