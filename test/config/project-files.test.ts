import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, renameSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { type ProjectFiles, readProjectFiles } from "../../src/config/project-files.ts";
import type { Log } from "../../src/log.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const secret = "3b1f0c5e9a3b48d2860e4f7a1b9c3d5e";

function makeFiles(t: TestContext) {
  const directory = temporaryDirectory(t);
  const projectsPath = join(directory, "projects");
  const secretsPath = join(directory, "secrets");
  mkdirSync(projectsPath);
  mkdirSync(secretsPath);
  const logged: string[] = [];
  const keep = (_fields: object, text: string) => void logged.push(text);
  const log = { info: keep, warn: keep, error: keep } as unknown as Log;
  return {
    projectsPath,
    secretsPath,
    logged,
    write: (name: string, text = `REPO_PATH=/srv/${name}\nWEBHOOK_SECRET=${secret}\n`) =>
      writeFileSync(join(projectsPath, `${name}.env`), text),
    writeSecrets(name: string, text: string, mode = 0o600) {
      writeFileSync(join(secretsPath, `${name}.env`), text);
      chmodSync(join(secretsPath, `${name}.env`), mode);
    },
    read() {
      const projects = readProjectFiles({ projectsPath, secretsPath, readEveryMs: 20, log });
      t.after(projects.stop);
      return projects;
    },
  };
}

const namesOf = (projects: ProjectFiles) => projects.list().map(({ name }) => name);

test("each file is a project, with its settings and the secrets of its scripts", (t) => {
  const files = makeFiles(t);
  // What only commands use is allowed.
  const more = "WEBHOOK_URL=https://shop.example.org/webhook\nHOTPUSH_GIT_HOST=gitea\n";
  files.write("shop", `REPO_PATH=/srv/shop\nWEBHOOK_SECRET=${secret}\n${more}`);
  files.write("blog", `REPO_PATH=/srv/b\r\nWEBHOOK_SECRET=${secret}\r\nBRANCH=master\r\n`);
  files.writeSecrets("shop", "TOKEN=tok-1234\n");
  const projects = files.read();
  assert.deepEqual(namesOf(projects), ["blog", "shop"]);
  const { settings } = projects.find("blog") ?? {};
  assert.deepEqual([settings?.secrets.current.reveal(), settings?.branch], [secret, "master"]);
  assert.deepEqual(projects.find("shop")?.scriptSecrets, { TOKEN: "tok-1234" });
  assert.deepEqual([...projects.faults()], []);
});

test("a secret that is replaced in the file it is read from counts", async (t) => {
  const files = makeFiles(t);
  const path = join(files.secretsPath, "webhook");
  writeFileSync(path, secret);
  files.write("shop", `REPO_PATH=/srv/shop\nWEBHOOK_SECRET_FILE=${path}\n`);
  const projects = files.read();
  writeFileSync(`${path}.new`, `${secret}0`);
  renameSync(`${path}.new`, path);
  await until("the new one", () => projects.find("shop")?.settings.secrets.current.reveal() === `${secret}0`);
});

test("a file that cannot be used is reported, and the last good settings stay", async (t) => {
  const files = makeFiles(t);
  for (const name of ["blog", "shop"]) files.write(name);
  const projects = files.read();
  for (const [text, reason] of [
    [`REPO_PATH=srv\nWEBHOOK_SECRET=${secret}`, /REPO_PATH is "srv"/],
    [`REPO_PATH=/srv/shop\nWEBHOOK_SECRET=${secret}\nBRANHC=main`, /^BRANHC is no setting/],
    ["REPO_PATH=/srv/shop", /placeholder/],
    [`WEBHOOK_SECRET=${secret}`, /^REPO_PATH is missing/],
  ] as const) {
    files.write("shop", text);
    await until("it is reported", () => reason.test(projects.faults().get("shop") ?? ""));
    assert.equal(projects.find("shop")?.settings.repoPath, "/srv/shop");
    assert.deepEqual(namesOf(projects), ["blog", "shop"]);
  }
  assert.match(files.logged.join("\n"), /Project shop has faulty settings\. Its last good settings stay/);
  files.write("shop");
  await until("it is good again", () => !projects.faults().has("shop"));
});

test("what is no file of a project is reported, and the others are served", (t) => {
  const files = makeFiles(t);
  files.write("shop");
  const path = (name: string) => join(files.projectsPath, `${name}.env`);
  for (const name of ["Shop", "-x", "a".repeat(40), "a b"]) files.write(name);
  writeFileSync(`${path("shop")}~`, "");
  mkdirSync(path("directory"));
  execFileSync("mkfifo", [path("pipe")]);
  writeFileSync(path("huge"), "#".repeat(2 ** 20));
  symlinkSync("/nowhere", path("link"));
  const projects = files.read();
  assert.deepEqual(namesOf(projects), ["shop"]);
  const { Shop, directory, pipe, huge, link, ...others } = Object.fromEntries(projects.faults());
  assert.match(Shop ?? "", /^Shop\.env is not the file of a project/);
  for (const fault of [directory, pipe]) assert.match(fault ?? "", /\.env is not a regular file/);
  assert.match(huge ?? "", /huge\.env has more than 64 KiB/);
  assert.match(link ?? "", /link\.env cannot be read \(ENOENT\)/);
  assert.equal(Object.keys(others).length, 3);
});

test("a service does not start without its directory of projects, and keeps them if it goes", async (t) => {
  const files = makeFiles(t);
  const away = `${files.projectsPath}.away`;
  files.write("shop");
  renameSync(files.projectsPath, away);
  assert.throws(files.read, /PROJECTS_PATH is .+, which cannot be read \(ENOENT\)/);
  renameSync(away, files.projectsPath);
  const projects = files.read();
  renameSync(files.projectsPath, away);
  await until("it is reported", () => projects.faults().size > 0);
  assert.deepEqual(namesOf(projects), ["shop"]);
  renameSync(away, files.projectsPath);
  await until("it is back", () => projects.faults().size === 0);
});

test("secrets that other users can read, and commands that are none, are refused", (t) => {
  for (const [text, mode, reason] of [
    ["TOKEN=1", 0o644, /Other users can read .+\. Run: chmod 600/],
    ["TOKEN=!", 0o600, /^The command of TOKEN in the secrets file names no program/],
    ["TOKEN=!op 'read", 0o600, /^The command of TOKEN in the secrets file has a quote/],
  ] as const) {
    const files = makeFiles(t);
    files.write("shop");
    files.writeSecrets("shop", text, mode);
    assert.match(files.read().faults().get("shop") ?? "", reason);
  }
});

test("two projects never share a checkout", async (t) => {
  const files = makeFiles(t);
  files.write("blog");
  const projects = files.read();
  files.write("shop", `REPO_PATH=/srv/blog\nWEBHOOK_SECRET=${secret}\n`);
  await until("it is reported", () => projects.faults().has("shop"));
  assert.match(projects.faults().get("shop") ?? "", /as in project blog/);
  rmSync(join(files.projectsPath, "blog.env"));
  await until("its checkout is free", () => projects.find("shop"));
});

test("a value that begins with ! is a command with its words, unless it is quoted", (t) => {
  const files = makeFiles(t);
  files.write("shop");
  const lines = [
    "A=plain",
    "B = !op read 'op://my vault/item' # a note",
    'C="!quoted"',
    "export D=!x  f'g h'i '' $HOME `id`; c|d",
  ];
  files.writeSecrets("shop", `${lines.join("\n")}\n`);
  const [shop] = files.read().list();
  assert.deepEqual(shop?.scriptSecrets, { A: "plain", C: "!quoted" });
  assert.deepEqual(shop?.secretCommands, {
    B: ["op", "read", "op://my vault/item"],
    D: ["x", "fg hi", "", "$HOME", "`id`;", "c|d"],
  });
});
