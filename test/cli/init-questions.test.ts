import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { openTestTerminal } from "../harness/hotpush.ts";
import { needs } from "../harness/requirements.ts";
import { makeProject } from "./init-project.ts";

test(
  "at a terminal init asks for the address until it gets one; Ctrl-C writes nothing",
  needs("tmux"),
  async (t) => {
    const { repository, env } = makeProject(t);
    const { type, press, waitFor } = openTestTerminal(t, env);
    type(`cd ${repository.directory} && clear && hotpush init; echo "ended with $?"`);
    await waitFor(/Address:$/);
    type("shop example");
    await waitFor(/That is not an address\./);
    press("C-c");
    assert.match(await waitFor(/ended with 1/), /^hotpush: Nothing was written\.$/m);
    assert.deepEqual([join(repository.directory, ".env"), env.SERVER_PATH].filter(existsSync), []);
  },
);
