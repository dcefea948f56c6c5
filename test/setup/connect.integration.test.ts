import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { hasSucceeded } from "../../src/platform/run-command.ts";
import { askRemote } from "../../src/setup/clone.ts";
import { type ConnectedProject, makeConnectedProject, signingToken } from "../harness/connected-project.ts";
import { hostToken } from "../harness/fake-git-host.ts";
import { type HostName, hostDescriptions } from "../harness/git-host-apis.ts";
import { launcher, noServer, runCli } from "../harness/hotpush.ts";
import { needs, nobody } from "../harness/requirements.ts";
import { processTexts } from "../harness/secrecy.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";

const hosts = Object.keys(hostDescriptions) as readonly HostName[];

test("a host that does not answer a call is one line, and git uses no key that it does not have", async (t) => {
  const calls = ["GET hooks", "GET keys", "POST hooks", "POST keys"];
  await Promise.all(
    hosts.flatMap((name) =>
      calls.map(async (call) => {
        const { host, keyPath, connect } = await makeConnectedProject(t, name);
        const operation = call.replace("keys", hostDescriptions[name].keys);
        host.instead = (described) => (described.operation === operation ? "hang" : null);
        const { fault, refusal } = await connect();
        assert.equal(fault, "unreachable");
        assert.match(refusal ?? "", /^[^\n]+does not answer within 10 s[^\n]+$/);
        assert.deepEqual([host.keys, existsSync(keyPath)], [[], false]);
      }),
    ),
  );
});

for (const name of hosts.filter((one) => one !== "forgejo"))
  test(`${name}: killed after any call, the next run leaves one hook and one key`, async (t) => {
    for (let at = 1; ; at += 1) {
      const project = await makeConnectedProject(t, name);
      const { host, webhookUrl } = project;
      // Some more to do, so that there are more calls: a doubled hook, and a key whose private half is lost.
      for (const id of at % 2 === 0 ? [1001, 1002] : [])
        host.hooks.push({
          id: name === "bitbucket-cloud" ? `{${id}-u}` : `${id}`,
          url: webhookUrl,
          secret: "old",
        });
      host.keys.push({
        id: "1004",
        title: `Hotpush ${webhookUrl}`,
        key: "ssh-ed25519 AAAAlost",
        isReadOnly: true,
      });
      const child = start(t, project);
      host.onDone = ({ number }) => {
        if (number === at) child.kill("SIGKILL");
      };
      const [, signal] = await once(child, "exit");
      host.onDone = () => {};
      const { refusal } = await project.connect();
      assert.equal(refusal, null);
      assert.deepEqual(
        [host.hooks.map(({ secret }) => secret), host.keys.length],
        [[signingToken], 1],
        `call ${at}`,
      );
      assert.deepEqual(host.faults, []);
      if (signal === null) break;
    }
  });

test("the token is in no argument, environment, file, output or log", async (t) => {
  const project = await makeConnectedProject(t, "gitlab");
  const { host, repository, server } = project;
  const seen: string[] = [];
  // While it runs: what any user sees of processes, and what root sees of them.
  host.onDone = () => {
    seen.push(...processTexts());
  };
  const body = JSON.stringify({ message: `${hostToken} ${signingToken}` });
  host.instead = ({ operation }) => (operation === "POST hooks" ? { status: 422, body } : null);
  const home = temporaryDirectory(t);
  const { code, stdout, stderr } = await runCli(args(project, tokenFileOf(t)), {
    cwd: repository.directory,
    env: { ...server.env, HOME: home },
  });
  assert.equal(code, 1);
  assert.match(stderr, /refuses to/);
  const files = [server.path, repository.directory, home].flatMap((path) =>
    readdirSync(path, { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map((entry) => readFileSync(join(entry.parentPath, entry.name), "latin1")),
  );
  assert.ok(seen.some((text) => text.includes("connect")));
  for (const text of [stdout, stderr, ...seen, ...files]) assert.ok(!text.includes(hostToken));
  for (const text of [stdout, stderr, ...seen]) assert.ok(!text.includes(signingToken));
});

test("a token file that others can read is refused, and HOTPUSH_TOKEN_FILE is not used", async (t) => {
  const project = await makeConnectedProject(t, "gitea");
  const { server, repository, host } = project;
  const path = tokenFileOf(t);
  const cwd = repository.directory;
  chmodSync(path, 0o644);
  const open = await runCli(args(project, path), { cwd, env: server.env });
  assert.match(open.stderr, /chmod 600/);
  const other = await runCli(["connect", "--repository", host.address], {
    cwd,
    env: { ...server.env, HOTPUSH_TOKEN_FILE: path },
  });
  // Without a terminal nobody is asked: the form is printed.
  assert.match(other.stdout, /^The webhook at Gitea:$/m);
  assert.equal(other.code, 75);
  assert.deepEqual(host.calls, []);
});

test("gh's own token is used for GitHub", async (t) => {
  const project = await makeConnectedProject(t, "github");
  const bin = temporaryDirectory(t);
  writeScript(
    join(bin, "gh"),
    `#!/bin/sh\n[ "$*" = "auth token --hostname 127.0.0.1" ] && echo ${hostToken}\n`,
  );
  const { stdout, code } = await runCli(["connect", "--repository", project.host.address], {
    cwd: project.repository.directory,
    env: { ...project.server.env, PATH: `${bin}:${process.env.PATH}` },
  });
  assert.equal(code, 0, stdout);
  assert.deepEqual([project.host.hooks.length, project.host.keys.length], [1, 1]);
});

test("the owner of a checkout sees no variable of root", needs("otherUser"), async (t) => {
  const { repository } = await makeConnectedProject(t, "github");
  const { directory } = repository;
  const seenBy = temporaryDirectory(t);
  for (let path = directory; path !== "/tmp" && path !== "/"; path = dirname(path)) chmodSync(path, 0o755);
  writeScript(join(seenBy, "spy"), `#!/bin/sh\nenv >${seenBy}/env\nexit 1\n`);
  repository.git("remote", "set-url", "origin", `ext::${join(seenBy, "spy")}`);
  repository.git("config", "protocol.ext.allow", "always");
  for (const path of [directory, seenBy]) execFileSync("chown", ["-R", `${nobody}:${nobody}`, path]);
  process.env.GH_TOKEN = hostToken;
  t.after(() => delete process.env.GH_TOKEN);
  assert.equal(hasSucceeded(await askRemote(directory)), false);
  const seen = readFileSync(join(seenBy, "env"), "utf8");
  assert.match(seen, /^GIT_TERMINAL_PROMPT=0$/m);
  assert.ok(!seen.includes(hostToken));
});

function args({ host }: ConnectedProject, tokenFile: string): readonly string[] {
  return ["connect", "--repository", host.address, "--token-file", tokenFile];
}

function start(scope: Scope, project: ConnectedProject) {
  return spawn(launcher, args(project, tokenFileOf(scope)), {
    cwd: project.repository.directory,
    env: { PATH: process.env.PATH, HOME: project.server.path, ...noServer, ...project.server.env },
    stdio: "ignore",
  });
}

function tokenFileOf(scope: Scope): string {
  const path = join(temporaryDirectory(scope), "token");
  writeFileSync(path, `${hostToken}\n`, { mode: 0o600 });
  return path;
}
