import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chownSync, globSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { refuseOtherState } from "../../src/rollout/locate-project.ts";
import {
  lockRollout,
  previousVersion,
  readVersions,
  rolloutState,
  type Version,
  withReturnTo,
  withVersion,
  writeVersions,
} from "../../src/rollout/state.ts";
import { makePlace, type Place, standInForDocker, startEngine } from "../harness/doctor.ts";
import { type CommandResult, runCli } from "../harness/hotpush.ts";
import { fillDisk, mountTmpfs } from "../harness/mounts.ts";
import { isProblem } from "../harness/problems.ts";
import { readProcesses } from "../harness/processes.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { engineWith } from "./sample.ts";

function lockPath(t: TestContext): string {
  return join(temporaryDirectory(t), "state", "shop.lock");
}

test("a signal to our process group does not end a flock that waits", async (t) => {
  const path = lockPath(t);
  const lock = await lockRollout(path, 0);
  const second = lockRollout(path, 60);
  const waiting = await until("flock waits", () =>
    readProcesses().find(({ parent, command }) => parent === process.pid && command.includes("--timeout 60")),
  );
  assert.equal(waiting.group, waiting.pid);
  await lock.release();
  await (await second).release();
});

test("a lock that the system refuses is reported in the words of flock", async (t) => {
  const directory = temporaryDirectory(t);
  writeScript(join(directory, "flock"), "#!/bin/sh\necho 'flock: 3: No locks available' >&2\nexit 71\n");
  const { PATH } = process.env;
  process.env.PATH = `${directory}:${PATH}`;
  t.after(() => Object.assign(process.env, { PATH }));
  const told = /shop\.lock could not be locked \(flock: 3: No locks available\)/;
  await assert.rejects(lockRollout(lockPath(t), 0), isProblem("state_unusable", told));
});

test("a child with the descriptor keeps the lock after the roll-out was killed", async (t) => {
  const path = lockPath(t);
  const lock = await lockRollout(path, 0);
  const child = spawn("sleep", ["60"], { stdio: ["ignore", "ignore", "ignore", lock.descriptor] });
  await once(child, "spawn");
  await lock.release(); // As the kernel does when a process is killed.
  await assert.rejects(lockRollout(path, 0), isProblem("rollout_locked", /It holds .*shop\.lock/));
  child.kill("SIGKILL");
  await once(child, "exit");
  await (await lockRollout(path, 0)).release();
});

test("a waiting roll-out that is asked to stop says so, and stops waiting", async (t) => {
  const path = lockPath(t);
  const other = await lockRollout(path, 0);
  const stopping = new AbortController();
  const waiting = lockRollout(path, 60, { report: () => stopping.abort(), signal: stopping.signal });
  await assert.rejects(waiting, isProblem("rollout_interrupted", /asked to stop while it waited/));
  await other.release();
  await (await lockRollout(path, 0)).release();
});

test("beside a Hotpush in the project's container a command says where to run it, unless STATE_PATH is set", async () => {
  const engine = engineWith(() => [{ Names: ["/shop-hotpush-1"] }]);
  const told = isProblem("state_unusable", /Run the command there: docker exec shop-hotpush-1 hotpush/);
  await assert.rejects(refuseOtherState(engine, "/srv/shop", {}), told);
  await refuseOtherState(engine, "/srv/shop", { STATE_PATH: "/var/lib/hotpush" });
});

test(
  "what root adds to the state of another user's project belongs to that user",
  needs("root"),
  async (t) => {
    const statePath = temporaryDirectory(t);
    chownSync(statePath, 65_534, 65_533);
    const { lockPath, versionsPath } = rolloutState(statePath, "/srv/shop");
    const lock = await lockRollout(lockPath, 0);
    await writeVersions(versionsPath, []);
    await lock.release();
    for (const path of [join(statePath, "rollout"), lockPath, versionsPath]) {
      const { uid, gid } = statSync(path);
      assert.deepEqual({ path, uid, gid }, { path, uid: 65_534, gid: 65_533 });
    }
  },
);

test(
  "a roll-out that cannot record its version fails, and says that it is rolled out",
  needs("mount"),
  async (t) => {
    const place = { ...makePlace(t), statePath: mountTmpfs(t, 1024 ** 2) };
    const engine = await startEngine(t, place);
    const first = await rollOut(place, engine);
    assert.equal(first.code, 0, first.stdout);
    fillDisk(place.statePath);
    const { code, stdout } = await rollOut(place, engine);
    assert.match(
      stdout.trimEnd().split("\n").at(-1) ?? "",
      /"failed","code":"state_unusable".* is rolled out, but/,
    );
    assert.equal(code, 1);
  },
);

test("a roll-out with a damaged list of versions changes nothing", async (t) => {
  const place = makePlace(t);
  const engine = await startEngine(t, place);
  await rollOut(place, engine);
  const [versions = ""] = globSync(join(place.statePath, "rollout/*.json"));
  writeFileSync(versions, "{");
  const { code, stdout } = await rollOut(place, engine);
  assert.match(stdout, /^\{"at":"[^"]+","event":"failed","code":"state_unusable".* is damaged .*\n$/);
  assert.equal(code, 1);
});

/** Rolls out a project without services. */
function rollOut(place: Place, engine: string): Promise<CommandResult> {
  const { env } = standInForDocker(place);
  const own = { STATE_PATH: place.statePath, DOCKER_HOST: `unix://${engine}` };
  return runCli(["rollout", "--no-build", "--json"], { cwd: place.repoPath, env: { ...own, ...env } });
}

function version(commit: string, id: string = commit): Version {
  const app = { image: "shop-app", id: `sha256:${id}`, tag: `shop-app:${commit}` };
  return { commit, finishedAt: "2026-11-21T00:00:00.000Z", images: { app } };
}

const [a, b, c] = [version("a"), version("b"), version("c")];

test("twenty versions of fifty services that each mount a hundred files can be read again", async (t) => {
  const { versionsPath } = rolloutState(temporaryDirectory(t), "/srv/shop");
  const files = Array.from({ length: 100 }, (_, at) => [
    `conf/file-${at}`,
    `${"a".repeat(40)} ${"b".repeat(64)}`,
  ]);
  const contents = Object.fromEntries(files);
  const services = Array.from({ length: 50 }, (_, at) => [
    `app-${at}`,
    { image: "a", id: "b", tag: "c", contents },
  ]);
  const large = { ...version("a"), images: Object.fromEntries(services) };
  await writeVersions(
    versionsPath,
    Array.from({ length: 20 }, () => large),
  );
  assert.equal((await readVersions(versionsPath)).length, 20);
});

test("a version with the same images takes the last one's place", () => {
  assert.deepEqual(withVersion([a, b], version("later", "b")), [a, version("later", "b")]);
});

test("the previous version is the last with other images, or that of the first digits of a commit", () => {
  assert.equal(previousVersion([a, b, c]), b);
  assert.equal(previousVersion([a, b, version("same", "b")])?.commit, "a");
  assert.equal(previousVersion([a]), null);
  assert.equal(previousVersion([version("abc123"), b, c], "abc")?.commit, "abc123");
  assert.equal(previousVersion([a, b, c], "d"), null);
});

test("going back twice goes two versions back, not to and fro; what was left can still be named", () => {
  // Read again from the file, it is another object.
  const once = withReturnTo([a, b, c], { ...b }, "now");
  assert.deepEqual(once, [a, { ...c, wasLeft: true }, { ...b, finishedAt: "now" }]);
  assert.equal(previousVersion(once), a);
  assert.equal(previousVersion(once, "c")?.commit, "c");
});

test("of a commit whose images changed, the version is found that was not rolled back from", () => {
  const [one, two, three] = [version("a", "one"), version("a", "two"), version("a", "three")];
  const once = withReturnTo([one, two, three], two, "now");
  assert.equal(previousVersion(once, "a"), one);
});
