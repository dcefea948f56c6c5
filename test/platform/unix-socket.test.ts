import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, chownSync, mkdirSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { type TestContext, test } from "node:test";
import { withShortPath } from "../../src/platform/http.ts";
import { listenOnSocket } from "../../src/platform/http-server.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const asRoot = needs("otherUser");
/** The user of the page, and somebody else. */
const page = 61_002;
const other = 61_003;
const options = { mode: 0o660, mostConnections: 8, isOfGroup: true };

function makePlace(t: TestContext, uid: number, mode: number) {
  const root = temporaryDirectory(t);
  chmodSync(root, 0o711);
  const directory = join(root, "page");
  mkdirSync(directory);
  chownSync(directory, uid, page);
  chmodSync(directory, mode);
  const rootFile = join(root, "file");
  writeFileSync(rootFile, "of root\n", { mode: 0o600 });
  return { directory, rootFile, path: join(directory, "page.sock") };
}

const use = `require("node:net").connect("page.sock").on("connect", () => process.exit(console.log("connected")))
  .on("error", ({ code }) => console.log(code))`;

test(
  "the group of the directory may use the socket, and cannot put anything in its place",
  asRoot,
  async (t) => {
    const { directory, path } = makePlace(t, 0, 0o750);
    const socket = await listenOnSocket(path, options, (connection) => connection.end());
    t.after(socket.close);
    const { uid, gid, mode } = statSync(path);
    assert.deepEqual([uid, gid, mode & 0o777], [0, page, 0o660]);
    const change = `const fs = require("node:fs");
    const tries = [() => fs.unlinkSync("page.sock"), () => fs.renameSync("page.sock", "x"), () => fs.chmodSync("page.sock", 0o777),
      () => fs.mkdirSync(".page.sock"), () => fs.symlinkSync("/etc/passwd", "link")];
    console.log(tries.map((work) => { try { work(); return "done"; } catch ({ code }) { return code; } }).join());`;
    assert.equal(await runAs(page, directory, change), "EACCES,EACCES,EPERM,EACCES,EACCES");
    assert.equal(await runAs(page, directory, use), "connected");
    // Started there by root, so that the directory itself is no obstacle.
    assert.equal(await runAs(other, directory, use), "EACCES");
  },
);

test(
  "root makes no socket in a directory that another user can change, and gives nothing away",
  asRoot,
  async (t) => {
    for (const [uid, mode] of [
      [page, 0o700],
      [0, 0o770],
      [0, 0o777],
    ] as const) {
      const { directory, path, rootFile } = makePlace(t, uid, mode);
      const race = `const fs = require("node:fs");
      for (;;) for (const name of [".page.sock", "page.sock"]) try {
        fs.rmSync(name, { recursive: true, force: true }); fs.symlinkSync(${JSON.stringify(rootFile)}, name);
        fs.unlinkSync(name); fs.mkdirSync(name); fs.symlinkSync(${JSON.stringify(rootFile)}, name + "/socket");
      } catch {}`;
      const attacker = spawn(process.execPath, ["-e", race], { cwd: directory, uid: page, gid: page });
      const ended = once(attacker, "exit");
      try {
        const endMs = performance.now() + 500;
        while (performance.now() < endMs)
          await assert.rejects(
            listenOnSocket(path, options, () => {}),
            /can be changed by other users/,
          );
      } finally {
        // Before its directory is removed.
        attacker.kill("SIGKILL");
        await ended;
      }
      const stats = statSync(rootFile);
      assert.deepEqual([stats.uid, stats.gid, stats.mode & 0o777], [0, 0, 0o600]);
    }
  },
);

test("root makes no socket below a directory that another user can change", asRoot, async (t) => {
  for (const [uid, mode] of [
    [page, 0o755],
    [0, 0o777],
    [0, 0o775],
  ] as const) {
    const { directory } = makePlace(t, 0, 0o750);
    const above = join(directory, "above");
    const inner = join(above, "inner");
    mkdirSync(inner, { recursive: true, mode: 0o750 });
    chownSync(above, uid, page);
    chmodSync(above, mode);
    await assert.rejects(
      listenOnSocket(join(inner, "page.sock"), options, () => {}),
      { message: uid === 0 ? /chmod go-w \S+\/above,/ : /above, .* Give it to root/ },
    );
    // Sticky, nobody but its owner can rename what is in it.
    if (uid !== 0) continue;
    chmodSync(above, 0o1777);
    (await listenOnSocket(join(inner, "page.sock"), options, () => {})).close();
  }
});

test("a link in the place of a socket is not followed, and a file is no socket", async (t) => {
  const directory = temporaryDirectory(t);
  const real = join(directory, "real");
  const link = join(directory, "link");
  const file = join(directory, "file");
  const server = createServer((socket) => socket.end()).listen(real);
  t.after(() => server.close());
  symlinkSync(real, link);
  writeFileSync(file, "");
  const reach = (path: string) => withShortPath(path, (short) => once(connect(short), "connect"));
  await reach(real);
  for (const path of [link, file]) await assert.rejects(reach(path), { code: "ENOTSOCK" });
  await assert.rejects(reach(join(directory, "none")), { code: "ENOENT" });
});

/** Runs a script in the directory as this user and its group. @returns what it prints; meanwhile the server answers */
async function runAs(uid: number, cwd: string, script: string): Promise<string> {
  const child = spawn(process.execPath, ["-e", script], { cwd, uid, gid: uid });
  return (await text(child.stdout)).trim();
}
