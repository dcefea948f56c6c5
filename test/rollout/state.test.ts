import assert from "node:assert/strict";
import { chownSync, globSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectEngine, type Engine } from "../../src/platform/docker/engine.ts";
import { refuseOtherState } from "../../src/rollout/compose/locate-project.ts";
import { lockRollout } from "../../src/rollout/lock.ts";
import { recordVersion } from "../../src/rollout/record-version.ts";
import { rolloutState } from "../../src/rollout/state.ts";
import { readVersions, writeVersions } from "../../src/rollout/versions.ts";
import { type CliEnding, runCli } from "../harness/cli.ts";
import { standInForDocker, startEngine } from "../harness/docker-stand-in.ts";
import { makePlace, type Place } from "../harness/doctor.ts";
import { isProblem } from "../harness/is-problem.ts";
import { listenAt } from "../harness/listen.ts";
import { fillDisk, mountTmpfs } from "../harness/mount.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("beside a Hotpush in the project's container, a command says where to run it", async (t) => {
  const { engine, asked } = await engineWith(t, [{ Names: ["/shop-hotpush-1"] }]);
  await assert.rejects(
    refuseOtherState(engine, "/srv/shop", {}),
    isProblem("state_unusable", /Run the command there: docker exec shop-hotpush-1 hotpush/),
  );
  assert.match(asked[0] ?? "", /image\.title=Hotpush.*project\.working_dir=\/srv\/shop.*running/);
});

test("without one, or with a STATE_PATH, it runs here", async (t) => {
  const { engine } = await engineWith(t, []);
  await refuseOtherState(engine, "/srv/shop", {});
  const { engine: other, asked } = await engineWith(t, [{ Names: ["/shop-hotpush-1"] }]);
  await refuseOtherState(other, "/srv/shop", { STATE_PATH: "/var/lib/hotpush" });
  assert.deepEqual(asked, []);
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

/** An engine with these containers, and what it was asked. */
async function engineWith(
  t: TestContext,
  containers: readonly { readonly Names: readonly string[] }[],
): Promise<{ readonly engine: Engine; readonly asked: readonly string[] }> {
  const asked: string[] = [];
  const server = createServer((request, response) => {
    asked.push(decodeURIComponent(request.url ?? ""));
    response.end(JSON.stringify(containers));
  });
  const path = await listenAt(t, server, join(temporaryDirectory(t), "docker.sock"));
  return { engine: connectEngine(`unix://${path}`), asked };
}

/** A file in place of the directory: that stops root too. */
function blockedPath(t: TestContext): string {
  const blocked = join(temporaryDirectory(t), "state");
  writeFileSync(blocked, "");
  return join(blocked, "rollout/shop.json");
}

test("a lock that cannot be made is reported with its path", async (t) => {
  const told = /state\/rollout\/shop\.json cannot be used \(ENOTDIR: .* STATE_PATH .* Nothing was changed\.$/;
  await assert.rejects(lockRollout(blockedPath(t), 0), isProblem("state_unusable", told));
});

test("versions that cannot be read are reported with their path", async (t) => {
  await assert.rejects(readVersions(blockedPath(t)), isProblem("state_unusable", /ENOTDIR/));
});

test("a version that serves and cannot be recorded is said to serve", needs("mount"), async (t) => {
  const disk = mountTmpfs(t, 64 * 1024);
  fillDisk(disk);
  const versionsPath = join(disk, "shop.json");
  const recorded = recordVersion({ versionsPath, version: null, commit: "a".repeat(40) }, async () => ({}));
  const told =
    /^The version a{12} serves, but it could not be recorded .*shop\.json .*ENOSPC.*Then roll out again/;
  await assert.rejects(recorded, isProblem("state_unusable", told));
});

for (const args of [["rollout"], ["rollout", "--back"], ["rollout", "--to", "3f2c1a9"]]) {
  test(`hotpush ${args.join(" ")} --json over a state directory that is none ends with the event failed`, async (t) => {
    const place = makePlace(t);
    writeFileSync(place.statePath, "");
    const { code, stdout } = await run(place, await startEngine(t, place, {}), ...args);
    const last: { readonly event: string; readonly code: string } = JSON.parse(
      stdout.trimEnd().split("\n").at(-1) ?? "",
    );
    assert.deepEqual([last.event, last.code, code], ["failed", "state_unusable", 1]);
  });
}

const unrecorded =
  "a roll-out whose version cannot be recorded ends with the event failed, which says that it serves";

test(unrecorded, needs("mount"), async (t) => {
  const place = { ...makePlace(t), statePath: mountTmpfs(t, 1024 ** 2) };
  const engine = await startEngine(t, place, {});
  const first = await run(place, engine, "rollout", "--no-build");
  assert.equal(first.code, 0, first.stdout);
  fillDisk(place.statePath);
  const { code, stdout } = await run(place, engine, "rollout", "--no-build");
  assert.match(stdout.trimEnd().split("\n").at(-1) ?? "", /"failed","code":"state_unusable".* serves, but/);
  assert.equal(code, 1);
});

test("a roll-out with a damaged list of versions changes nothing", async (t) => {
  const place = makePlace(t);
  const engine = await startEngine(t, place, {});
  await run(place, engine, "rollout", "--no-build");
  const [versions = ""] = globSync(join(place.statePath, "rollout/*.json"));
  writeFileSync(versions, "{");
  const { code, stdout } = await run(place, engine, "rollout", "--no-build");
  assert.match(stdout, /^\{"at":"[^"]+","event":"failed","code":"state_unusable".* is damaged .*\n$/);
  assert.equal(code, 1);
});

/** Rolls out a project without services. */
async function run(place: Place, engine: string, ...args: readonly string[]): Promise<CliEnding> {
  const { repoPath, statePath } = place;
  const { env } = standInForDocker(place, {});
  const DOCKER_HOST = `unix://${engine}`;
  return await runCli([...args, "--json"], {
    cwd: repoPath,
    env: { STATE_PATH: statePath, DOCKER_HOST, ...env },
  });
}
