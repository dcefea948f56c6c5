import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chownSync, existsSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { sendHttp } from "../../src/platform/http.ts";
import { buildOwnImage } from "../../src/setup/start.ts";
import { githubPush } from "../harness/delivery.ts";
import { hostToken } from "../harness/fake-git-host.ts";
import { processTexts } from "../harness/secrecy.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { type CleanServer, obstacleToCleanServer, startCleanServer } from "../lab/clean-server.ts";
import { openLab } from "../lab/lab.ts";
import { cutConnections, type LabGitHost, makeLaptop, startLabGitHost } from "../lab/laptop.ts";

const lab = await openLab();
const obstacle = obstacleToCleanServer() ?? (lab.kind === "ready" ? null : lab.reason);
// In CI this test is never skipped.
const skip = process.env.CI ? false : (obstacle ?? false);
const withinMs = 120_000;
const name = "shop.test";
const other = "blog.test";
/** A name for which Caddy asks nobody for a certificate. */
const page = "hotpush.home.arpa";

/** A bare server, a git host with a repository, and a laptop that has signed in to the one and pushed to the other. */
async function start(t: TestContext) {
  if (lab.kind !== "ready") throw new Error(`There is no lab: ${obstacle}`);
  const server = await startCleanServer(lab.env, true);
  t.after(() => server.end());
  const host = await startLabGitHost(t, server);
  for (const one of [name, other, page])
    await appendFile(server.file("/etc/hosts"), `${server.address} ${one}\n`);
  const laptop = await makeLaptop(t, { [name]: server.address, [other]: server.address });
  await laptop.meet(server);
  await laptop.learn(`[${host.address}]:${host.sshd.port}`, `${host.sshd.hostKey}.pub`);
  const args = [
    ...["up", `root@${server.address}`, "--repository", host.remote, "--api", host.api.address],
    ...["--url", `http://${name}`, "--token-file", laptop.tokenFile, "--yes"],
  ];
  return { server, host, laptop, args };
}

type Started = Awaited<ReturnType<typeof start>>;

test("from nothing to a pushed-to project with one command, and again", {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { server, host, laptop, args } = await start(t);
  // Debian's bash reads it for each command that comes over ssh.
  const bashrc = server.file("/root/.bashrc");
  writeFileSync(bashrc, "echo Welcome\n");
  const seen = new Set<string>();
  const { onDone } = host.api;
  host.api.onDone = (call) => {
    onDone(call);
    for (const text of processTexts()) seen.add(text);
  };
  const places = ["/etc", "/opt", "/root", "/srv", "/tmp", "/var", "/run", "/home"].map(server.file);
  const search = ["-rlsF", "--devices=skip", hostToken, ...places, join(laptop.home, ".config")];
  // The layers of the base image have the files of these tests.
  const known = findText(search);
  const opened = join(laptop.home, "opened");
  writeScript(
    join(laptop.home, "bin/xdg-open"),
    `#!/bin/sh\nprintf %s "$1" >${opened}.new; mv ${opened}.new ${opened}\n`,
  );
  Object.assign(laptop.env, { DISPLAY: ":0" });
  // As a person's own clone on the laptop is.
  const license = fileURLToPath(new URL("../../LICENSE", import.meta.url));
  const { uid, gid } = statSync(license);
  chownSync(license, 1000, 1000);
  t.after(() => chownSync(license, uid, gid));
  const first = await laptop.hotpush([...args, "--page", `https://${page}`]);
  assert.equal(first.code, 0, first.output);
  assert.doesNotMatch(first.output, /test\s+push\s+to\s+\S+\s+failed|cannot\s+read\s+the\s+remote/);
  assert.equal(statSync(server.file("/opt/hotpush/LICENSE")).uid, 0, "only root may change the program");
  assert.equal(await versionAt(server), "1");
  await push(server, host, 2);
  await until("version 2", async () => (await versionAt(server)) === "2", withinMs);

  const connected = () => [host.api.hooks.map(({ url }) => url), host.api.keys.map((key) => key.isReadOnly)];
  assert.deepEqual(connected(), [[`http://${name}/webhook`], [true]]);
  // As if other sources of this version had been sent before.
  const digest = server.file("/opt/hotpush/sources.sha256");
  const sent = readFileSync(digest, "utf8");
  writeFileSync(digest, "that of other sources\n");
  const again = await laptop.hotpush(args);
  assert.equal(again.code, 0, again.output);
  assert.equal(readFileSync(digest, "utf8"), sent);
  assert.deepEqual(connected(), [[`http://${name}/webhook`], [true]]);
  assert.equal(await versionAt(server), "2");
  assert.deepEqual(host.api.faults, []);
  // Commands over ssh pass on all that comes.
  writeFileSync(bashrc, "");

  const status = await laptop.hotpush(["status", "--json"]);
  assert.equal(status.code, 0, status.output);
  const history = await laptop.hotpush(["history", "--json"]);
  const { deployments } = JSON.parse(history.output) as { readonly deployments: readonly { id: number }[] };
  assert.equal(deployments.length, 2, history.output);
  const deployed = await laptop.hotpush(["deploy"]);
  assert.equal(deployed.code, 0, deployed.output);

  await until("the browser", () => existsSync(opened));
  const link = new URL(readFileSync(opened, "utf8"));
  assert.equal(link.hostname, page);
  const ticket = `${link.pathname}${link.search}${link.hash}`.split(/[/=#]/).at(-1) ?? "";
  assert.ok(ticket.length > 20, ticket);
  for (const text of [first.output, again.output, ...seen]) assert.ok(!text.includes(hostToken));
  assert.equal(findText(search), known);
  const { stdout } = await server.type("/", "docker ps --all --quiet | xargs -n 1 docker logs 2>&1");
  for (const hidden of [hostToken, ticket]) assert.ok(!stdout.includes(hidden));
  assert.ok(![first.output, again.output].some((text) => text.includes(ticket)));
  assert.equal(findText(["-rlsF", "--devices=skip", "-e", ticket, ...places]), "");

  await addSecondProject(t, { server, laptop });
});

/** The same command, without a token: the key is added by hand. */
async function addSecondProject(t: TestContext, { server, laptop }: Pick<Started, "server" | "laptop">) {
  const host = await startLabGitHost(t, server);
  const api = ["--api", host.api.address];
  await laptop.learn(`[${host.address}]:${host.sshd.port}`, `${host.sshd.hostKey}.pub`);
  const at = ["up", `root@${server.address}`, "--repository", host.remote, ...api];
  const args = [...at, "--url", `http://${other}`, "--project", "blog"];
  host.push(7);
  const first = await laptop.hotpush(args);
  assert.equal(first.code, 1, first.output);
  const [key = ""] = /^ssh-ed25519 \S+/m.exec(first.output) ?? [];
  host.addKey(key);
  const { code, output } = await laptop.hotpush(args);
  assert.equal(code, 0, output);
  assert.match(output, /ssh root@\S+\s+grep\s+\^WEBHOOK_SECRET=/);
  assert.equal(await versionAt(server, other), "7");
  const { stdout: line } = await server.type("/", "grep ^WEBHOOK_SECRET= /etc/hotpush/projects/blog.env");
  const ofBlog = ["--project", "blog", "--json"];
  const commit = await push(server, host, 8, { secret: line.trim().replace(/^\w+=/, ""), at: other });
  const logs = await laptop.hotpush(["logs", "-f", ...ofBlog]);
  const { deployment } = JSON.parse(logs.stdout.trim().split("\n").at(-1) ?? "");
  assert.deepEqual([deployment.commit, deployment.state], [commit, "succeeded"], logs.output);
  assert.equal(await versionAt(server, other), "8");
}

test("from nothing again, at a terminal: sudo, three typed values, and a local image", {
  skip,
  timeout: 900_000,
}, async (t) => {
  const { server, host, laptop } = await start(t);
  const { stdout, code } = await server.type("/", addAda);
  assert.equal(code, 0, stdout);
  const login = `ada@${server.address}`;
  if (lab.kind === "ready") await buildOwnImage(lab.env);
  Object.assign(laptop.env, lab.kind === "ready" ? { DOCKER_HOST: lab.env.DOCKER_HOST } : {});
  const checkout = join(laptop.home, "shop");
  execFileSync("git", ["init", "--quiet", checkout]);
  execFileSync("git", ["-C", checkout, "remote", "add", "origin", host.remote]);
  const answers = [
    { question: /Address: /, text: `http://${name}` },
    { question: /Token \(it is not shown\)/, text: hostToken },
    { question: /Install Docker .+\[y\/N\]/s, text: "y" },
  ];
  // The lab's git host has a name that does not show what it is.
  const typed = await laptop.type(checkout, ["up", login, "--api", host.api.address], answers);
  assert.equal(typed.code, 0, typed.output);
  assert.match(typed.output, /docker save .+ docker load/);
  assert.ok(!typed.output.includes(hostToken));
  await push(server, host, 2);
  await until("version 2", async () => (await versionAt(server)) === "2", withinMs);
});

/** A user with root's key, whom sudo asks for no password. */
const addAda = `apt-get -qq update && apt-get -qq install -y sudo >/dev/null && useradd -m -s /bin/sh ada &&
install -d -o ada -m 700 /home/ada/.ssh && install -o ada -m 600 /root/.ssh/authorized_keys /home/ada/.ssh/ &&
echo 'ada ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/ada`;

test("cut at every command, the same line goes on to the end", { skip, timeout: 900_000 }, async (t) => {
  const { server, host, laptop, args } = await start(t);
  const cut = new Set<string>();
  let runs = 0;
  for (; ; runs += 1) {
    let isCut = false;
    const { code, output } = await laptop.hotpush(args, (text) => {
      const line = text.split("\n").findLast((one) => /^ {4}\S/.test(one)) ?? "";
      if (isCut || line === "" || cut.has(line)) return;
      isCut = cutConnections(server) > 0;
      if (isCut) cut.add(line);
    });
    if (!isCut) {
      assert.equal(code, 0, output);
      break;
    }
    assert.ok(runs < 60, output);
  }
  t.diagnostic(`cut ${cut.size} times in ${runs} runs`);
  assert.ok(cut.size >= 12, [...cut].join("\n"));
  assert.equal(await versionAt(server), "1");
  assert.deepEqual([host.api.hooks.length, host.api.keys.length, host.api.faults], [1, 1, []]);
});

/** Commits a version, pushes it, and sends what the git host would. @returns the commit */
async function push(
  server: CleanServer,
  host: LabGitHost,
  version: number,
  { secret = host.api.hooks[0]?.secret, at = name } = {},
): Promise<string> {
  const after = host.push(version);
  const { headers, body } = githubPush({ after, repository: "octo/shop" }, secret);
  const request = { method: "POST", headers: { ...headers, host: at }, body };
  const answer = await sendHttp(new URL("/webhook", `http://${server.address}`), request);
  assert.equal(answer.status, 202, String(answer.body));
  return after;
}

async function versionAt(server: CleanServer, host = name): Promise<string | null> {
  const request = { headers: { host }, timeoutMs: 10_000 };
  const { body } = await sendHttp(new URL(`http://${server.address}`), request);
  return /version (\d+)/.exec(String(body))?.[1] ?? null;
}

/** @returns the names of the files that have it */
function findText(args: readonly string[]): string {
  try {
    return execFileSync("grep", args, { encoding: "utf8" });
  } catch (error) {
    return String((error as { readonly stdout?: string }).stdout ?? "");
  }
}
