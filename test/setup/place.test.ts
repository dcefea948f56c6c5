import assert from "node:assert/strict";
import { join } from "node:path";
import { test } from "node:test";
import { isUserKnown } from "../../src/setup/server.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

for (const [what, code, isKnown] of [
  ["a user in /etc/passwd of run is known", 0, true],
  ["a user who is not there is unknown", 2, false],
  ["if the engine does not answer, nobody counts as unknown", 125, true],
] as const) {
  test(what, async (t) => {
    const bin = temporaryDirectory(t);
    writeScript(join(bin, "docker"), `#!/bin/sh\n[ "$1" = exec ] && exit ${code}\necho 0123456789ab\n`);
    assert.equal(await isUserKnown(61_001, { PATH: `${bin}:${process.env.PATH}` }), isKnown);
  });
}

test("without a container of run, nobody counts as unknown", async (t) => {
  const bin = temporaryDirectory(t);
  writeScript(join(bin, "docker"), "#!/bin/sh\n");
  assert.equal(await isUserKnown(61_001, { PATH: `${bin}:${process.env.PATH}` }), true);
});
