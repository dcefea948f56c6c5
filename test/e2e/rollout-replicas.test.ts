import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openLab } from "../lab/lab.ts";
import { startLoad } from "../lab/load.ts";
import { makeProject, readLive, type TestProject } from "../lab/project.ts";

const lab = await openLab();
const skip = lab.kind === "ready" ? false : lab.reason;

describe("three replicas, each with a live file of its own", { skip, concurrency: false }, () => {
  let project: TestProject;

  before(async () => {
    project = await makeProject(lab.kind === "ready" ? lab.env : {});
    project.env.REPLICAS = "3";
    const caddyfile = join(project.directory, "Caddyfile");
    const all = ["app", "app.2", "app.3"].map((file) => `{file./run/live/${file}}:8080`).join(" ");
    await writeFile(caddyfile, (await readFile(caddyfile, "utf8")).replace("{file./run/live/app}:8080", all));
    await project.write("first", "dies-on-sigterm");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
  });
  after(() => project.remove());

  test("no request fails while three new ones take over, each by its own live file", async () => {
    const load = startLoad(project.origin);
    await sleep(500);
    await project.write("second", "dies-on-sigterm");
    const { code, output } = await project.rollOut();
    await sleep(500);
    const { failures, answers, versions } = await load.stop();
    assert.equal(code, 0, output);
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${answers.length} failed`);
    assert.deepEqual(versions, ["first", "second"]);
    const names = (await project.containers("app")).map((line) => line.split(" ")[0]);
    const live = await Promise.all(["app", "app.2", "app.3"].map((file) => readLive(project, file)));
    assert.deepEqual(live.sort(), names.sort());
  });

  test("one replica in place of three gets all requests", async () => {
    const load = startLoad(project.origin);
    const { code, output } = await project.rollOut({ env: { REPLICAS: "1" } });
    await sleep(500);
    const { failures, answers } = await load.stop();
    assert.equal(code, 0, output);
    assert.deepEqual(failures.slice(0, 3), [], `${failures.length} of ${answers.length} failed`);
    const [only = ""] = await project.containers("app");
    const live = await Promise.all(["app", "app.2", "app.3"].map((file) => readLive(project, file)));
    assert.deepEqual([...new Set(live)], [only.split(" ")[0]]);
  });
});
