import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { readDeploymentReport } from "../../src/rollout/report.ts";
import { countingLines } from "../../src/rollout/requests.ts";
import { startLoad } from "../lab/load.ts";
import { onEngine } from "../lab/on-engine.ts";
import {
  countingCaddyfile,
  makeProject,
  requestsIn,
  type TestProject,
  untilPrinted,
} from "../lab/project.ts";

onEngine("the requests of a roll-out", (env) => {
  let project: TestProject;

  before(async () => {
    project = await makeProject(env);
    await writeFile(join(project.directory, "Caddyfile"), countingCaddyfile);
    await project.write("first", "graceful");
    const { code, output } = await project.rollOut({ args: ["app", "caddy"] });
    assert.equal(code, 0, output);
  });
  after(() => project?.remove());

  test("known numbers of requests of each kind are counted exactly, and reported for the receipt", async () => {
    await project.write("second", "slow-start");
    const rollout = project.spawnRollout({ args: ["--json", "app"], env: { DEPLOY_ID: "7" } });
    const { code, output } = await untilPrinted(rollout, /"step":"start"/, () => sendEachKind(project));
    assert.equal(code, 0, output);
    // The check of the app through the proxy is six good answers more, of the new version.
    assert.deepEqual(requestsIn(output), [
      {
        host: "127.0.0.1",
        requests: 20 + 5 + 4 + 3 + 6 + 2 + 7 + 1 + 2 + 6,
        failed: 4 + 2,
        brokeOff: 3 + 1 + 2,
        left: 6,
        before: { answers: 20 + 5 + 7, serverErrors: 5 },
        after: { answers: 6, serverErrors: 0 },
      },
    ]);
    const { requests, images } = readDeploymentReport(join(project.directory, "state"), 7);
    assert.deepEqual(requests, requestsIn(output));
    assert.match(images?.find(({ service }) => service === "app")?.id ?? "", /^sha256:[0-9a-f]{64}$/);
  });

  test("a version that answers badly is counted as its clients see it", async () => {
    await project.write("bad", "broken");
    const load = startLoad(project.origin, 20);
    const { code, output } = await project.rollOut({ args: ["--json", "app"] });
    const { failures } = await load.stop();
    assert.equal(code, 1, output);
    const [site] = requestsIn(output);
    assert.ok(site, output);
    // The five bad answers that made the check fail are among them.
    assert.equal(site.failed + site.before.serverErrors + site.after.serverErrors, failures.length + 5);
    assert.ok(failures.length > 0);
  });

  test("without the lines in the Caddyfile, a roll-out prints them", async () => {
    const plain = await makeProject(env);
    try {
      await plain.write("first", "graceful");
      assert.equal((await plain.rollOut({ args: ["app", "caddy"] })).code, 0);
      const { code, output } = await plain.rollOut({ args: ["app", "caddy"] });
      assert.equal(code, 0, output);
      assert.match(output, /The requests were not counted/);
      for (const line of countingLines("/run/live", null)) assert.ok(output.includes(`\n${line}\n`), line);
    } finally {
      await plain.remove();
    }
  });
});

/** Sends requests, each with an ending of its own, and checks what the client sees. */
async function sendEachKind(project: TestProject): Promise<void> {
  const { origin } = project;
  const live = join(await project.livePath(), "app");
  const send = async (count: number, path: string, seen: Seen, leaveAfterMs?: number) => {
    const answers = Array.from({ length: count }, () => ask(origin + path, leaveAfterMs));
    assert.deepEqual(
      await Promise.all(answers),
      Array.from({ length: count }, () => seen),
      path,
    );
  };
  await Promise.all([
    send(20, "/", 200),
    send(5, "/fail", 500),
    send(4, "/reset", 502),
    send(3, "/break", "broken off"),
    send(6, "/?ms=3000", "broken off", 200),
    send(2, "/stream?lines=9", "broken off", 300),
  ]);
  const [name] = (await project.containers("app"))[0]?.split(" ") ?? [];
  await writeFile(live, "nobody.invalid");
  // The first reaches the app by its name; the others would be deliveries, which are not sent on.
  await Promise.all([send(7, "/", 200), send(1, "/break", "broken off"), send(2, "/webhook", 502)]);
  await writeFile(live, name ?? "");
}

/** The status of a whole answer, or none was given. */
type Seen = number | "broken off";

function ask(url: string, leaveAfterMs: number | undefined): Promise<Seen> {
  return new Promise((resolve) => {
    const end = () => resolve("broken off");
    const sent = get(url, { agent: false }, (response) => {
      response.on("end", () => resolve(response.complete ? (response.statusCode ?? 0) : "broken off"));
      response.on("error", end).resume();
    });
    sent.on("error", end);
    if (leaveAfterMs !== undefined) setTimeout(() => sent.destroy(), leaveAfterMs);
  });
}
