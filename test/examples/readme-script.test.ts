import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { commit, deploy, git, makeProject, push, putOnPath } from "./project.ts";

const readme = readFileSync(join(import.meta.dirname, "../../README.md"), "utf8");

test("the script of the README deploys the commit, and fails if a step fails", async (t) => {
  const script = /```bash\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
  const project = await makeProject(t, { "deploy.sh": script });
  const deployed = await commit(project, { "page.txt": "second\n" });
  await push(project);
  await putOnPath(project, "hotpush", '#!/bin/sh\necho "hotpush $*"\n');
  await putOnPath(project, "curl", '#!/bin/sh\necho "curl"; test -e ../answers\n');
  const down = await deploy(project, ["refs/heads/main", deployed]);
  assert.equal(down.code, 1, down.output);
  assert.match(down.output, /^hotpush rollout --prune\ncurl$/m);
  assert.equal(await git(project, project.checkout, "rev-parse", "HEAD"), deployed);
  await putOnPath(project, "curl", "#!/bin/sh\n");
  assert.equal((await deploy(project, ["refs/heads/main", deployed])).code, 0);
  assert.equal((await deploy(project, ["refs/heads/main", "0".repeat(40)])).code, 128);
  assert.equal((await deploy(project, ["refs/heads/master", deployed])).code, 128);
});
