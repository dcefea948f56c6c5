import assert from "node:assert/strict";
import { createServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { connectEngine, type Engine } from "../../src/platform/docker/engine.ts";
import { refuseOtherState } from "../../src/rollout/refuse-other-state.ts";
import { isProblem } from "../harness/is-problem.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("beside a Hotpush in the project's own container, a command is told where to run", async (t) => {
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
