import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { test } from "node:test";
import { hotpush, startAnswering } from "../harness/hotpush.ts";

test("STATE_PATH is read from the .env of the working directory, as by the service", async (t) => {
  const service = await startAnswering(t);
  writeFileSync(`${service.repoPath}/.env`, `STATE_PATH=${service.statePath}\n`);
  const { code } = await hotpush(
    { ...service, env: { STATE_PATH: undefined }, cwd: service.repoPath },
    "status",
  );
  assert.equal(code, 0);
});
