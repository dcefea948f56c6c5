import assert from "node:assert/strict";
import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { canBeMounted, readPaths } from "../../src/setup/compose-paths.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

test("each directory that compose reads a file of is found, also behind links, files and variables", (t) => {
  const machine = temporaryDirectory(t);
  const root = join(machine, "checkout");
  const write = (name: string, content: object | string = "") => {
    const path = join(machine, name);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof content === "string" ? content : JSON.stringify(content));
    return path;
  };
  const link = (name: string, to: string) => symlinkSync(to, join(root, name));
  write("checkout/app.env");
  link(".env", write("dotenv/env"));
  link("linked.env", write("links/env"));
  write("include/nested/nested.env");
  const services = { other: { env_file: ["nested/nested.env"] } };
  const include = [{ path: write("include/base.yaml", { services }) }];
  const web = {
    env_file: ["app.env", { path: write("env_file/app.env") }, "linked.env", "missing/absent.env"],
    extends: { file: write("extends/base.yaml", "services: {}"), service: "web" },
    label_file: [write("labels/web")],
    build: {
      context: dirname(write("context/Dockerfile")),
      additional_contexts: [`etc=${dirname(write("more/x"))}`],
    },
    environment: { path: dirname(write("free/x")), file: "free/x" },
    labels: { context: join(machine, "free") },
    volumes: [`${dirname(write("data/db"))}:/db`],
  };
  const api = {
    build: { context: "..", additional_contexts: { file: dirname(write("map/x")) } },
    label_file: write("one/x"),
  };
  const secrets = { labels: { file: "$SECRETS/x" } };
  write("secrets/x");
  write("defaults/y");
  const configs = { y: { file: `\${UNKNOWN:-${machine}/defaults}/y` } };
  const file = write("checkout/compose.yaml", { include, services: { web, api }, secrets, configs });
  const found = readPaths({ root, composeFiles: [file], env: { SECRETS: join(machine, "secrets") } });
  const own = found.map((path) => path.slice(machine.length)).toSorted();
  assert.deepEqual(own, [
    "",
    ...[
      "/checkout",
      "/context",
      "/defaults",
      "/dotenv",
      "/env_file",
      "/extends",
      "/include",
      "/include/nested",
    ],
    ...["/labels", "/links", "/map", "/more", "/one", "/secrets"],
  ]);
});

test("what no compose file says ends nothing, and soon", (t) => {
  const root = temporaryDirectory(t);
  const file = join(root, "compose.yaml");
  const read = (text: string) => {
    writeFileSync(file, text);
    return readPaths({ root, composeFiles: [file], env: {} });
  };
  assert.deepEqual(read("services: &a { web: *a }"), [root]);
  const startedMs = performance.now();
  assert.deepEqual(read(`services: { web: { env_file: '${"${a:-".repeat(200_000)}' } }`), [root]);
  assert.ok(performance.now() - startedMs < 5_000);
});

test("no directory that the image of run needs is hidden by one of the machine", () => {
  for (const path of [
    "/",
    "/etc",
    "/etc/ssl",
    "/usr/bin",
    "/usr/local/lib",
    "/usr/share",
    "/var/lib",
    "/tmp",
    "/run",
  ])
    assert.equal(canBeMounted(path), false, path);
  assert.equal(canBeMounted("/etc/apt"), true);
});
