import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { cpSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { git, makePlace, type Place, probe } from "../harness/doctor.ts";
import type { Scope } from "../harness/temporary.ts";
import { onEngine } from "../lab/on-engine.ts";

const example = join(import.meta.dirname, "../../examples/compose");

/** The example's project, and the doctor with the Docker of the lab. */
function makeExample(t: Scope, lab: NodeJS.ProcessEnv) {
  const place = makePlace(t);
  for (const name of ["compose.yaml", "Caddyfile", "app"]) {
    cpSync(join(example, name), join(place.repoPath, name), { recursive: true });
  }
  git(place, "add", "--all");
  git(place, "commit", "--quiet", "--message", "Compose");
  const { DOCKER_HOST = "unix:///var/run/docker.sock", DOCKER_CONFIG = "", PATH = "" } = lab;
  return { place, run: { env: { DOCKER_HOST, DOCKER_CONFIG, PATH } } };
}

function editCompose({ repoPath }: Place, edit: (text: string) => string): void {
  const path = join(repoPath, "compose.yaml");
  const before = readFileSync(path, "utf8");
  const after = edit(before);
  assert.notEqual(after, before);
  writeFileSync(path, after);
}

/** The compose file says that requests go to the app, and not how it is. */
function withoutHealthcheck(text: string): string {
  return text.replace(/ {4}healthcheck:.*?(?= {4}labels:)/s, '    expose: ["8080"]\n');
}

onEngine("hotpush doctor with a real Docker", (env) => {
  test("a fault is found in the file as compose resolves it, and the old file passes", async (t) => {
    const { place, run } = makeExample(t, env);
    const edits: readonly (readonly [string, (text: string) => string])[] = [
      ["services", (text) => text.replace("    build: app\n", '    build: app\n    ports: ["8080:8080"]\n')],
      ["compose", (text) => text.replace("  caddy:\n", "  caddy\n")],
    ];
    const good = readFileSync(join(place.repoPath, "compose.yaml"), "utf8");
    for (const [id, edit] of edits) {
      editCompose(place, edit);
      const found = await probe(place, id, run);
      assert.equal(found.outcome, "faulty", `${id}: ${JSON.stringify(found)}`);
      writeFileSync(join(place.repoPath, "compose.yaml"), good);
      assert.equal((await probe(place, id, run)).outcome, "ok", id);
    }
  });

  test("a health check in the image counts", async (t) => {
    const { place, run } = makeExample(t, env);
    const image = `hotpush-doctor-test-${process.pid}`;
    const docker = (...args: readonly string[]) =>
      execFileSync("docker", args, { env: { ...process.env, ...run.env }, stdio: "pipe" });
    rmSync(join(place.repoPath, "app"), { recursive: true });
    editCompose(place, (text) => withoutHealthcheck(text.replace("build: app", `image: ${image}`)));
    assert.equal((await probe(place, "services", run)).outcome, "faulty");
    writeFileSync(join(place.root, "Dockerfile"), "FROM caddy:2\nHEALTHCHECK CMD true\n");
    docker("build", "--quiet", "--tag", image, "--file", join(place.root, "Dockerfile"), place.home);
    t.after(() => docker("image", "rm", "--force", image));
    assert.equal((await probe(place, "services", run)).outcome, "ok");
  });
});
