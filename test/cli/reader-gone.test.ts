import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { type TestContext, test } from "node:test";
import { rolloutState } from "../../src/rollout/state.ts";
import { makePlace, type Place, standInForDocker, startEngine } from "../harness/doctor.ts";
import { launcher } from "../harness/hotpush.ts";

test("a roll-out runs to its end if its reader goes away", async (t) => {
  const project = await makeProject(t);
  const code = await runUnread(project, "rollout", "--no-build");
  const { statePath, repoPath } = project.place;
  assert.ok(existsSync(rolloutState(statePath, repoPath).versionsPath), "no version is recorded");
  assert.equal(code, 0);
});

for (const args of [["rollout"], ["rollout", "--json"], ["rollback"]]) {
  test(`hotpush ${args.join(" ")} that fails exits with 1 even if nobody reads its output`, async (t) => {
    const { env, place } = await makeProject(t);
    const unreachable = { ...env, DOCKER_HOST: "unix:///nonexistent/docker.sock" };
    assert.equal(await runUnread({ place, env: unreachable }, ...args), 1);
  });
}

test("a command that only prints ends with its reader", async (t) => {
  assert.equal(await runUnread(await makeProject(t), "completion", "bash"), 0);
});

interface ProjectSetting {
  readonly place: Place;
  readonly env: NodeJS.ProcessEnv;
}

/** A project without services: its roll-out replaces nothing, but does everything before and after that. */
async function makeProject(t: TestContext): Promise<ProjectSetting> {
  const place = makePlace(t);
  const { env } = standInForDocker(place);
  const DOCKER_HOST = `unix://${await startEngine(t, place)}`;
  return { place, env: { HOME: place.home, STATE_PATH: place.statePath, DOCKER_HOST, ...env } };
}

/** Runs a command whose readers of stdout and stderr go away before it writes anything. */
async function runUnread({ env, place }: ProjectSetting, ...args: readonly string[]): Promise<number | null> {
  const child = spawn(launcher, args, { cwd: place.repoPath, env, stdio: ["ignore", "pipe", "pipe"] });
  child.stdout.destroy();
  child.stderr.destroy();
  const [code]: (number | null)[] = await once(child, "exit");
  return code ?? null;
}
