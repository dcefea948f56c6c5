import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { ComposeModel } from "../../src/platform/compose.ts";
import { changeOf, readContents } from "../../src/rollout/started-from.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { sampleContainer, sampleRollout, sampleService } from "./sample.ts";

const git = (directory: string, ...args: readonly string[]) =>
  execFileSync("git", ["-c", "user.name=Ada", "-c", "user.email=a@example.org", ...args], { cwd: directory });
const commit = (directory: string) => {
  git(directory, "add", "--all");
  git(directory, "commit", "--quiet", "--message", "change");
};

test("files that git tracks and inline texts count, by any path to them; all else is data", async (t) => {
  const root = temporaryDirectory(t);
  const directory = join(root, "deploy");
  const at = (path: string) => join(root, path);
  git(root, "init", "--quiet");
  for (const path of ["deploy", "conf", "data"]) mkdirSync(at(path));
  for (const path of ["conf/a", "conf/b", "file", "deploy/inner", ".gitkeep"]) writeFileSync(at(path), "1");
  symlinkSync("conf", at("link"));
  writeFileSync(at(".gitignore"), "data\n");
  commit(root);
  writeFileSync(at("data/rows"), "1");
  const paths = ["conf", "link", "file", "deploy/inner", "data", "missing"].map(at);
  const volumes = [...paths, "/etc/hostname"].map((source) => ({
    type: "bind",
    source,
    target: "/x",
    read_only: true,
  }));
  const uses = { configs: [{ source: "text" }, { source: "path" }], secrets: [{ source: "variable" }] };
  const model = (text: string): ComposeModel => ({
    name: "shop",
    services: { app: { volumes, ...uses } },
    configs: { text: { content: text }, path: { file: at("conf/b") } },
    secrets: { variable: { environment: "SECRET" } },
  });
  const read = async (text = "1", SECRET = "1") =>
    (await readContents({ ...sampleRollout(directory), env: { ...process.env, SECRET } }, model(text))).app ??
    {};
  const before = await read();
  const changed = async (after: Promise<Record<string, string>>) =>
    Object.entries(await after).flatMap(([name, id]) => (before[name] === id ? [] : [name]));
  const names = ["../conf", "../conf/b", "../file", "../link", "config text", "inner", "secret variable"];
  assert.deepEqual(Object.keys(before).sort(), names);
  assert.deepEqual(await changed(read("2", "1")), ["config text"]);
  assert.deepEqual(await changed(read("1", "2")), ["secret variable"]);
  for (const path of ["data/rows", ".gitkeep", "conf/untracked"]) writeFileSync(at(path), "2");
  assert.deepEqual(await changed(read()), []);
  writeFileSync(at("file"), "2");
  assert.deepEqual(await changed(read()), ["../file"]);
  writeFileSync(at("conf/b"), "2");
  commit(root);
  assert.deepEqual((await changed(read())).sort(), ["../conf", "../conf/b", "../file", "../link"]);
});

const containers = [sampleContainer()];
const started = (ids: readonly string[], content: string) => {
  const image = { image: "shop-app", id: "sha256:1", tag: "", containers: ids, contents: { conf: content } };
  return { commit: "1".repeat(40), finishedAt: "", images: { app: image } };
};

test("a changed file replaces a service; of a container that Hotpush does not know, one that is recreated stays", async (t) => {
  const rollout = sampleRollout(temporaryDirectory(t));
  const notes: string[] = [];
  const change = (
    current: ReturnType<typeof started> | null,
    how: "roll" | "recreate" = "roll",
    version = null,
  ) => {
    const mode = how === "roll" ? { how } : { how, reason: "port" };
    const contents = Promise.resolve({ app: { conf: "2" } });
    const report = (event: object) => notes.push(JSON.stringify(event));
    const on = {
      ...rollout,
      service: sampleService({ mode }),
      current,
      version,
      contents,
      report,
      directedBy: null,
    };
    return changeOf(on, containers);
  };
  assert.equal(await change(started(["id-1"], "2")), null);
  assert.equal(await change(started(["id-1"], "1")), "conf changed");
  assert.equal(await change(started(["id-1"], "1"), "recreate"), "conf changed");
  assert.match((await change(started(["id-0"], "2"))) ?? "", /conf is not known/);
  assert.match((await change(null)) ?? "", /conf is not known/);
  assert.deepEqual(notes, []);
  assert.equal(await change(started(["id-0"], "1"), "recreate"), null);
  assert.match(notes.join(), /stays: whether .* conf is not known/);
});
