import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { deployHead, makeProject, type Project, putOnPath } from "./project.ts";

test("a compose file has compose build, replace and wait, and only this project's images pruned", async (t) => {
  const project = await makeProject(t, {
    "compose.yaml": "services: {}\n",
    "restart.sh": "#!/bin/sh\nexit 9\n",
  });
  await putDocker(project);
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  assert.deepEqual(output.match(/^==> [\w ]+/gm), [
    "==> Pull",
    "==> Build and replace",
    "==> Prune",
    "==> Health check",
    "==> Done",
  ]);
  const calls = (await readFile(join(project.root, "docker-calls"), "utf8")).trim().split("\n");
  assert.deepEqual(calls.slice(2), [
    "compose up -d --build --wait --remove-orphans",
    "compose config",
    "image prune --force --filter label=com.docker.compose.project=shop",
  ]);
});

test("with hotpush in the PATH, it replaces and prunes, and compose replaces nothing", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
  await putDocker(project);
  await putHotpush(project);
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  const calls = await readFile(join(project.root, "hotpush-calls"), "utf8");
  assert.equal(calls, "rollout --prune\n");
  assert.ok(!existsSync(join(project.root, "docker-calls")));
});

for (const name of ["stack.yaml", "stack.yml", "docker-stack.yaml", "docker-stack.yml"]) {
  test(`with a ${name} and no compose file, hotpush replaces and prunes; without compose, that is said`, async (t) => {
    const project = await makeProject(t, { [name]: "services: {}\n", "restart.sh": "#!/bin/sh\nexit 9\n" });
    await putDocker(project);
    await putHotpush(project);
    const { code, output } = await deployHead(project);
    assert.equal(code, 0, output);
    assert.equal(await readFile(join(project.root, "hotpush-calls"), "utf8"), "rollout --prune\n");
    await putDocker(project, "compose version");
    await putHotpush(project, "rollout");
    const without = await deployHead(project);
    assert.equal(without.code, 1, without.output);
    assert.match(without.output, /FAILED: There is a compose or stack file, but no docker compose\./);
  });
}

for (const line of ["COMPOSE_FILE=ops/shop.yaml", '  export COMPOSE_FILE = "ops/shop.yaml"']) {
  test(`a compose file that only \`${line}\` in .env names is replaced by compose`, async (t) => {
    const project = await makeProject(t, { "restart.sh": "#!/bin/sh\nexit 9\n" });
    await writeFile(join(project.checkout, ".env"), `A=1\n${line}\n`);
    await putDocker(project);
    const { code, output } = await deployHead(project);
    assert.equal(code, 0, output);
    assert.match(output, /^==> Build and replace$/m);
  });
}

test("a COMPOSE_FILE in .env that is a comment or empty names no compose file", async (t) => {
  const project = await makeProject(t);
  await writeFile(
    join(project.checkout, ".env"),
    "# COMPOSE_FILE=a.yaml\nCOMPOSE_FILE=\nNO_COMPOSE_FILE=a\n",
  );
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  assert.match(output, /^No compose or stack file/m);
});

test("a stack file without hotpush in the PATH fails, says why, and leaves docker alone", async (t) => {
  const project = await makeProject(t, { "stack.yaml": "services: {}\n" });
  await putDocker(project);
  const { code, output } = await deployHead(project);
  assert.equal(code, 1, output);
  assert.match(
    output,
    /^FAILED: There is a stack file, which compose cannot roll out, but no hotpush in the/m,
  );
  await assert.rejects(readFile(join(project.root, "docker-calls")), { code: "ENOENT" });
});

test("a stack file beside a compose file changes nothing for plain compose", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n", "stack.yaml": "services: {}\n" });
  await putDocker(project);
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  const calls = await readFile(join(project.root, "docker-calls"), "utf8");
  assert.match(calls, /^compose up -d --build --wait --remove-orphans$/m);
});

test("a roll-out that fails fails the deployment", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
  await putDocker(project);
  await putHotpush(project, "rollout");
  const bad = await deployHead(project);
  assert.equal(bad.code, 17, bad.output);
});

test("a container that does not become healthy fails the deployment, and nothing is pruned", async (t) => {
  const project = await makeProject(t, { "docker-compose.yml": "services: {}\n" });
  await putDocker(project, "compose up*");
  const { code, output } = await deployHead(project);
  assert.equal(code, 17, output);
  assert.ok(!output.includes("==> Prune"), output);
});

test("a failing prune does not fail the deployment", async (t) => {
  const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
  await putDocker(project, "image prune*");
  const { code, output } = await deployHead(project);
  assert.equal(code, 0, output);
  assert.match(output, /Could not prune; going on\./);
});

for (const [missing, sentence] of [
  ["compose version", /FAILED: There is a compose or stack file, but no docker compose\. Install it: https:/],
  ["version *", /FAILED: Docker does not answer\. Start it \(systemctl start docker\), or let this user/],
] as const) {
  test(`a docker whose '${missing}' fails is a sentence with what to do`, async (t) => {
    const project = await makeProject(t, { "compose.yaml": "services: {}\n" });
    await putDocker(project, missing);
    const { code, output } = await deployHead(project);
    assert.equal(code, 1);
    assert.match(output, sentence);
  });
}

/** A hotpush that records its arguments, and fails (17) for the command `failing`. */
async function putHotpush(project: Project, failing = "none"): Promise<void> {
  const path = join(project.root, "hotpush-calls");
  await putOnPath(
    project,
    "hotpush",
    `#!/bin/sh\necho "$*" >>'${path}'\n[ "$1" != ${failing} ] || exit 17\n`,
  );
}

/** A docker that records its arguments and fails (17) if they match the pattern; there is no engine here. */
async function putDocker(project: Project, failing = "none"): Promise<void> {
  await putOnPath(
    project,
    "docker",
    `#!/bin/bash
echo "$*" >>'${project.root}/docker-calls'
[[ "$*" != ${failing.replaceAll(" ", "\\ ")} ]] || exit 17
[[ "$*" != 'compose config' ]] || printf 'name: shop\\nservices:\\n  web:\\n    name: other\\n'
`,
  );
}
