import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  chownSync,
  existsSync,
  lchownSync,
  mkdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  truncateSync,
  writeFileSync,
} from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import {
  controllerOf,
  listForeignDirectory,
  makeForeignDirectory,
  readForeignFile,
  replaceForeignFile,
  statForeignFile,
} from "../../src/platform/foreign-files.ts";
import { needs } from "../harness/requirements.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";

const asRoot = needs("otherUser");
const uid = 61_001;
const mostBytes = 1_000;

/** A directory of another user in one of root, which nobody else can enter, and beside it a file of root. */
function makePlace(scope: Scope) {
  const root = temporaryDirectory(scope);
  chmodSync(root, 0o711);
  const theirs = join(root, "theirs");
  const ours = join(root, "ours");
  mkdirSync(theirs);
  mkdirSync(ours, { mode: 0o700 });
  writeFileSync(join(ours, "secret"), "of root\n", { mode: 0o600 });
  writeFileSync(join(ours, "open"), "of root\n", { mode: 0o644 });
  chownSync(theirs, uid, uid);
  return { theirs, ours };
}

function linkOf(path: string, target: string): string {
  symlinkSync(target, path);
  lchownSync(path, uid, uid);
  return path;
}

function write(path: string, text: string): string {
  writeFileSync(path, text, { mode: 0o600 });
  chownSync(path, uid, uid);
  return path;
}

test("pipes, sockets, devices, directories and large files are refused at once", asRoot, async (t) => {
  const { theirs } = makePlace(t);
  const pipe = join(theirs, "pipe");
  const socket = join(theirs, "socket");
  const large = join(theirs, "large");
  execFileSync("mkfifo", [pipe]);
  const server = createServer().listen(socket);
  t.after(() => server.close());
  await new Promise((resolve) => server.once("listening", resolve));
  write(large, "");
  truncateSync(large, 2 ** 40);
  for (const path of [pipe, socket, "/dev/zero", "/dev/tty", linkOf(join(theirs, "to-pipe"), pipe)])
    assert.throws(() => readForeignFile(path, { mostBytes }), { code: "EINVAL" }, path);
  assert.throws(() => readForeignFile(theirs, { mostBytes }), { code: "EISDIR" });
  assert.throws(() => readForeignFile(large, { mostBytes }), { code: "EFBIG" });
  assert.equal(readForeignFile(large, { mostBytes, isCut: true }).length, mostBytes);
  assert.throws(() => listForeignDirectory(pipe), { code: "ENOTDIR" });
});

test("root follows a link of another user only to what that user can reach", asRoot, (t) => {
  const { theirs, ours } = makePlace(t);
  write(join(theirs, "file"), "theirs\n");
  const read = (path: string, namedBy?: number) => readForeignFile(path, { mostBytes, namedBy }).toString();
  assert.equal(read(linkOf(join(theirs, "own"), "file")), "theirs\n");
  assert.equal(read(linkOf(join(theirs, "around"), "../theirs/./own")), "theirs\n");
  const toSecret = linkOf(join(theirs, "secret"), join(ours, "secret"));
  const toOpen = linkOf(join(theirs, "open"), join(ours, "open"));
  linkOf(join(theirs, "directory"), ours);
  for (const path of [toSecret, toOpen, join(theirs, "directory/open")])
    assert.throws(() => read(path), { code: "EPERM" }, path);
  assert.throws(() => read(join(ours, "open"), uid), { code: "EPERM" });
  assert.equal(read(join(ours, "open")), "of root\n");
  chmodSync(ours, 0o755);
  assert.equal(read(toOpen), "of root\n");
  assert.equal(read(join(theirs, "directory/open")), "of root\n");
  assert.throws(() => read(toSecret), { code: "EPERM" });
  symlinkSync(join(ours, "secret"), join(ours, "link"));
  assert.equal(read(join(ours, "link")), "of root\n");
  linkOf(join(theirs, "a"), "b");
  assert.throws(() => read(linkOf(join(theirs, "b"), "a")), { code: "ELOOP" });
  // Few links of many names each, which would take long.
  const around = "/usr/..".repeat(40);
  for (let link = 0; link < 9; link += 1)
    linkOf(
      join(theirs, `long-${link}`),
      `${around}${join(theirs, link === 0 ? "file" : `long-${link - 1}`)}`,
    );
  assert.equal(read(join(theirs, "long-0")), "theirs\n");
  assert.throws(() => read(join(theirs, "long-8")), { code: "ELOOP" });
  const deep = join(theirs, "deep/".repeat(300));
  mkdirSync(deep, { recursive: true });
  assert.throws(() => read(join(deep, "file")), { code: "ELOOP" });
});

test("who could exchange what is at a path decides about it, also if nothing is there", asRoot, (t) => {
  const { theirs, ours } = makePlace(t);
  const uidAt = (path: string) => controllerOf(path)?.uid ?? null;
  assert.equal(uidAt(ours), null);
  assert.equal(uidAt(theirs), uid);
  mkdirSync(join(theirs, "of-root"));
  assert.equal(uidAt(join(theirs, "of-root")), uid);
  assert.equal(uidAt(join(theirs, "missing/more")), uid);
  assert.equal(uidAt(linkOf(join(theirs, "to-root"), ours)), uid);
  linkOf(join(ours, "into-theirs"), join(theirs, "of-root"));
  assert.equal(uidAt(join(ours, "into-theirs")), uid);
  assert.equal(uidAt(join(ours, "missing")), null);
});

test("a file is replaced in the directory itself, and through no link of another user", asRoot, (t) => {
  const { theirs, ours } = makePlace(t);
  const access = { mode: 0o644, owner: { uid, gid: uid } };
  const link = linkOf(join(theirs, "file"), join(ours, "secret"));
  replaceForeignFile(link, "new\n", access);
  assert.equal(readFileSync(join(ours, "secret"), "utf8"), "of root\n");
  assert.deepEqual([readFileSync(link, "utf8"), statSync(link).uid], ["new\n", uid]);
  linkOf(join(theirs, "directory"), ours);
  assert.throws(() => replaceForeignFile(join(theirs, "directory/secret"), "", access), { code: "EPERM" });
  assert.deepEqual(listForeignDirectory(theirs), ["directory", "file"]);
});

test("names that are exchanged all the time lead to no file of root", asRoot, async (t) => {
  const { theirs, ours } = makePlace(t);
  const directory = join(theirs, "directory");
  mkdirSync(directory);
  chownSync(directory, uid, uid);
  write(join(directory, "secret"), "theirs\n");
  const script = `for (;;) {
    const { renameSync, symlinkSync, unlinkSync } = require("node:fs");
    renameSync("directory", "aside"); symlinkSync(${JSON.stringify(ours)}, "directory");
    unlinkSync("directory"); renameSync("aside", "directory");
  }`;
  const child = spawn(process.execPath, ["-e", script], { cwd: theirs, uid, gid: uid, stdio: "inherit" });
  const ended = once(child, "exit");
  const seen = new Set<string>();
  const startMs = performance.now();
  const hasSeenBoth = () => seen.has("theirs\n") && seen.has("EPERM");
  while (performance.now() - startMs < (hasSeenBoth() ? 2_000 : 60_000)) {
    try {
      seen.add(readForeignFile(join(directory, "secret"), { mostBytes }).toString());
    } catch (error) {
      seen.add((error as NodeJS.ErrnoException).code ?? "");
    }
  }
  // Before its directory is removed.
  child.kill("SIGKILL");
  await ended;
  assert.ok(hasSeenBoth(), [...seen].join());
  assert.ok(!seen.has("of root\n"), [...seen].join());
});

test("root makes, measures and gives away no directory behind a link of another user", asRoot, (t) => {
  const { theirs, ours } = makePlace(t);
  const link = linkOf(join(theirs, "state"), ours);
  const access = { mode: 0o755, owner: { uid, gid: uid } };
  for (const path of [link, join(link, "made"), join(link, "made", "deeper")]) {
    assert.throws(() => makeForeignDirectory(path, access), { code: "EPERM" }, path);
    assert.throws(() => statForeignFile(path), { code: "EPERM" }, path);
  }
  const { uid: owner, mode } = statSync(ours);
  assert.deepEqual([owner, mode & 0o777, existsSync(join(ours, "made"))], [0, 0o700, false]);
  const made = join(theirs, "new", "deeper");
  makeForeignDirectory(made, { mode: 0o711, owner: { uid, gid: uid } });
  assert.deepEqual([statForeignFile(made)?.uid, (statSync(made).mode & 0o777).toString(8)], [uid, "711"]);
  makeForeignDirectory(made, { mode: 0o700, owner: { uid: 0, gid: 0 } });
  assert.deepEqual([statSync(made).uid, (statSync(made).mode & 0o777).toString(8)], [0, "700"]);
  assert.equal(statForeignFile(join(theirs, "nothing")), null);
});
