import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { after, before, test } from "node:test";
import { compareVersions } from "../../src/compare-versions.ts";
import { buildImage, removeImage } from "../lab/image.ts";
import { onEngine } from "../lab/on-engine.ts";

const image = `hotpush-image-test-${process.pid}`;
const largestMb = 520;

onEngine("Hotpush's image", (env) => {
  const docker = (...args: readonly string[]) =>
    execFileSync("docker", args, { env, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] });
  const inImage = (...command: readonly string[]) =>
    docker("run", "--rm", "--network=none", "--entrypoint=", image, ...command);

  before(() => buildImage(env, image));
  after(() => removeImage(env, image));

  test(`takes at most ${largestMb} MB with all its layers`, (t) => {
    const layers = docker("history", "--human=false", "--format={{.Size}}", image)
      .trim()
      .split("\n")
      .map(Number);
    const mb = layers.reduce((sum, size) => sum + size, 0) / 1_000_000;
    t.diagnostic(`${mb.toFixed(0)} MB`);
    assert.ok(mb > 100 && mb <= largestMb, `${mb} MB`);
  });

  for (const [what, command, oldest] of [
    ["git", ["git", "--version"], "2.40"],
    ["docker", ["docker", "--version"], "28.0"],
    ["compose", ["docker", "compose", "version"], "2.30"],
    ["buildx", ["docker", "buildx", "version"], "0.19"],
    ["node", ["node", "--version"], "24.0"],
  ] as const) {
    test(`has ${what} ${oldest} or newer`, () => {
      const answer = inImage(...command);
      const version = /\d+\.\d+(?:\.\d+)?/.exec(answer)?.[0] ?? "";
      assert.ok(compareVersions(version, oldest) >= 0, answer);
    });
  }

  test("has an ssh client, curl and setpriv, and neither npm nor files of apt", () => {
    for (const program of ["ssh", "curl", "setpriv", "tini"]) inImage("which", program);
    const left =
      "ls /usr/local/lib/node_modules /var/cache/apt/*.bin /var/cache/apt/archives/*.deb /var/lib/apt/lists/* || true";
    assert.equal(inImage("sh", "-c", `{ ${left}; } 2>/dev/null`), "");
  });
});
