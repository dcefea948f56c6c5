import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { makeMachine, type Role } from "../harness/machine.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

/** The files of src/ that a role has loaded when it serves a project. */
async function filesOf(t: TestContext, role: Role): Promise<string> {
  const machine = makeMachine(t);
  machine.addProject("shop", temporaryDirectory(t));
  const hooks = join(temporaryDirectory(t), "hooks.mjs");
  const load = "(url, context, next) => { console.error(url); return next(url, context); }";
  writeFileSync(hooks, `import { registerHooks } from "node:module";\nregisterHooks({ load: ${load} });\n`);
  const { log } = await machine.start(role, { NODE_OPTIONS: `--import=${hooks}` });
  const entry = role === "front" ? "src/front/front.ts" : "src/run.ts";
  await until("its own file", () => log.otherText.some((line) => line.endsWith(entry)));
  return log.otherText.map((line) => line.replace(/^.*\/src\//, "src/")).join("\n");
}

const page = /^src\/(?:front\/page|rollout\/(?:rollout|roll-service)\.|setup\/init|doctor|cli)/m;
const record =
  /^src\/(?:deployments\/(?!push\.ts)|runner|rollout|redaction|control|doctor|platform\/docker\/)|^src\/(?:run\.ts|projects\/)/m;

for (const [claim, role, loaded, forbidden] of [
  ["front loads no code that deploys, keeps its record or answers commands", "front", "webhook", record],
  ["run loads no code that reads requests from the internet", "run", "take-pushes", /^src\/front\//m],
  ["the single process loads no code of the page, of commands or of the roll-out", "all", "webhook", page],
] as const)
  test(claim, async (t) => {
    const files = await filesOf(t, role);
    assert.match(files, new RegExp(`^src/.*/${loaded}\\.ts$`, "m"));
    assert.doesNotMatch(files, forbidden);
  });
