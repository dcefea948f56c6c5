import assert from "node:assert/strict";
import { cpSync } from "node:fs";
import { appendFile, cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { sendHttp } from "../../src/platform/http.ts";
import { githubPush } from "../harness/delivery.ts";
import type { DoctorCheck } from "../harness/doctor.ts";
import { git } from "../harness/repository.ts";
import { temporaryDirectory } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import {
  type Answer,
  type CleanServer,
  obstacleToCleanServer,
  startCleanServer,
} from "../lab/clean-server.ts";
import { openLab } from "../lab/lab.ts";
import { during, startLoad } from "../lab/load.ts";
import { webService } from "../lab/server.ts";

const web = { build: "app", restart: "unless-stopped" };
const afterMigration = { migrate: { condition: "service_completed_successfully" } };

/** Unlike projects. The hosts are those at which a service answers. */
const projects = {
  store: {
    owner: "root",
    hosts: ["store.test"],
    services: {
      migrate: { build: "app", restart: "no", command: ["node", "--eval", "console.log('migrated')"] },
      web: { ...webService("8081"), depends_on: afterMigration },
      worker: {
        ...web,
        command: ["node", "--eval", "setInterval(() => {}, 1e3)"],
        depends_on: afterMigration,
      },
    },
    causes: [],
  },
  twin: {
    owner: "ada",
    hosts: ["twin.test", "admin.twin.test"],
    services: { site: { ...web, ports: ["3000:8080"] }, admin: { ...web, ports: ["3001:8080"] } },
    // Its services have no health check.
    causes: ["services"],
  },
} as const;
type Name = keyof typeof projects;
const names = Object.keys(projects) as Name[];

const pageName = "hotpush.home.arpa";
/** About thirty requests a second at each host, so that two cores have time for the roll-out. */
const loadPauseMs = 500;
const withinMs = 120_000;

const lab = await openLab();
const obstacle = obstacleToCleanServer() ?? (lab.kind === "ready" ? null : lab.reason);
// In CI this test is never skipped.
const skip = process.env.CI ? false : (obstacle ?? false);

let server: CleanServer;
const sources = join(import.meta.dirname, "../..");
/** A bare repository with the files of this checkout, as they are now. */
const ownRepository = temporaryDirectory({ after });
const forms = new Map<Name, ReturnType<typeof readForm>>();
/** The deployments of each project's push. */
const pushed = new Map<Name, number>();

before(async () => {
  if (skip) return;
  if (obstacle !== null || lab.kind !== "ready") throw new Error(`There is no clean server: ${obstacle}`);
  server = await startCleanServer(lab.env);
  git(sources, "init", "--quiet", "--bare", "--initial-branch=main", ownRepository);
  const inOwn = ["--git-dir", ownRepository, "--work-tree", sources];
  git(sources, ...inOwn, "add", "--all");
  git(sources, ...inOwn, "commit", "--quiet", "--message", "All files");
  cpSync(ownRepository, server.file("/srv/hotpush.git"), { recursive: true });
  const hosts = names.flatMap((name) => projects[name].hosts);
  await appendFile(server.file("/etc/hosts"), `${server.address} ${[...hosts, pageName].join(" ")}\n`);
  await succeed("/", "useradd --create-home --groups docker ada");
  for (const name of names) await makeRepository(name);
});
after(() => server?.end());

test("the README's commands install Hotpush from a fresh clone", { skip }, async () => {
  for (const command of await readmeCommands("## Install"))
    await succeed("/root", command.replace("<this repository>", "/srv/hotpush.git"));
  assert.match(await succeed("/root", "hotpush --version"), /^\d+\.\d+\.\d+/);
});

for (const name of names) {
  test(`the README's three commands set up ${name}`, { skip }, async () => {
    const directory = `/srv/${name}`;
    const [init = "", up = "", send = ""] = await readmeCommands();
    const [host, other] = projects[name].hosts;
    const answers: Answer[] = [{ question: /reach this server[\s\S]*Address: /, text: `http://${host}` }];
    if (other)
      answers.push({ question: /Address of site /, text: "" }, { question: /Address of admin /, text: "" });
    if (projects[name].owner !== "root") {
      const { code, output } = await server.type(directory, init);
      assert.equal(code, 1, output);
      await succeed(directory, /git config --global --add safe\.directory \S+/.exec(output)?.[0] ?? output);
    }
    forms.set(name, readForm(await succeed(directory, init, answers)));
    await succeed(directory, up);
    assert.match(await succeed(directory, send), /A signed test push reached the service and would deploy/);
    for (const one of projects[name].hosts)
      await until(`1 at ${one}`, async () => (await versionAt(one)) === "1");
  });
}

for (const name of names) {
  test(`a push to ${name} is live, and no request is lost`, { skip, timeout: 300_000 }, async (t) => {
    const loads = projects[name].hosts.map((host) => startLoad(origin(), loadPauseMs, host));
    const results = await during(loads, async () => {
      const id = await push(name, "2");
      pushed.set(name, id);
      assert.equal(await until(`the end of deployment ${id}`, () => endOf(name, id), withinMs), "succeeded");
    });
    for (const { answers, versions } of results) {
      assert.deepEqual(versions, ["1", "2"]);
      t.diagnostic(`${answers.length} requests`);
    }
  });
}

for (const name of names) {
  test(`the push to ${name} leaves a receipt that can be verified`, { skip }, async () => {
    const file = `/root/${name}.json`;
    await succeed(`/srv/${name}`, `hotpush receipt ${pushed.get(name)} >${file} && hotpush verify ${file}`);
    const receipt = JSON.parse(await readFile(server.file(file), "utf8"));
    const { subject, predicate } = JSON.parse(Buffer.from(receipt.payload, "base64").toString());
    const head = await succeed(`/srv/developer/${name}`, "git -c safe.directory='*' rev-parse HEAD");
    assert.equal(subject[0].digest.gitCommit, head.trim());
    assert.equal(predicate.requests.failed, 0);
    assert.ok(predicate.requests.counted > 0);
  });

  test(`the doctor finds nothing at ${name} that its owner did not cause`, { skip }, async () => {
    const { stdout } = await server.type(`/srv/${name}`, "hotpush doctor --json");
    const { checks } = JSON.parse(stdout) as { readonly checks: readonly DoctorCheck[] };
    const caused: readonly string[] = projects[name].causes;
    const faulty = checks.filter(({ id, outcome }) => outcome === "faulty" && !caused.includes(id));
    assert.deepEqual(faulty, []);
  });

  test(`init again in ${name} changes nothing`, { skip }, async () => {
    const place = `/etc/hotpush /srv/${name}`;
    const look = `find ${place} -type f -not -path '*/.git/*' -exec md5sum {} + | sort; docker ps --quiet --no-trunc | sort`;
    const seen = await succeed("/", look);
    await succeed(`/srv/${name}`, "hotpush init");
    assert.equal(await succeed("/", look), seen);
  });
}

test("a push to a user's checkout was deployed as that user", { skip }, async () => {
  const state = "/var/lib/hotpush/projects/twin";
  assert.equal(await succeed("/", `find /srv/twin ${state} ! -user ada`), "");
  assert.equal((await succeed("/", `stat --format %a ${state}`)).trim(), "700");
  assert.match(await succeed("/", `ls ${state}/rollout`), /^twin-\w+\.json$/m);
});

test("a roll back finds the good versions of that user", { skip }, async () => {
  const said = await succeed("/srv/twin", "hotpush rollback");
  assert.match(said, /^Deployment \d+ goes back to \S+\./);
  assert.equal(await versionAt("twin.test"), "1");
});

test("a script of that user is cancelled with all its processes", { skip }, async () => {
  const processes = () => succeed("/", "pgrep --count --exact --euid ada sleep || true");
  await succeed("/srv/twin", "cp deploy.sh /root; printf '#!/bin/sh\nsleep 600 &\nsleep 600\n' >deploy.sh");
  await succeed("/srv/twin", "hotpush deploy --detach");
  await until("the script and its child run", async () => (await processes()) === "2\n");
  await succeed("/srv/twin", "hotpush cancel");
  await until("nothing runs", async () => (await processes()) === "0\n");
  assert.match(await succeed("/srv/twin", "hotpush history"), /cancelled/);
  await succeed("/srv/twin", "cat /root/deploy.sh >deploy.sh");
});

test("init --page names the cause if Caddy gets no certificate", { skip }, async () => {
  const [init = ""] = await readmeCommands("To watch in a browser");
  const { code, output } = await server.type("/srv/store", `${init} --yes`);
  assert.equal(code, 1, output);
  assert.match(output, /hotpush\.example\.com/);
  assert.doesNotMatch(output, /To sign in/);
});

test("init --page returns when the page answers, and a click leads to a signed-in screen", {
  skip,
}, async () => {
  const [init = "", open = ""] = await readmeCommands("To watch in a browser");
  const output = await succeed("/srv/store", `${init.replace("hotpush.example.com", pageName)} --yes`);
  const signedOut = await visit("/");
  assert.equal(signedOut.status, 401, signedOut.text);
  assert.match(output, /The page is at https:\/\/hotpush\.home\.arpa\. To sign in: hotpush open/);
  const link = new URL(/https:\S+/.exec(await succeed("/srv/store", open))?.[0] ?? "");
  assert.equal((await visit(`${link.pathname}${link.search}`)).status, 200);
  const cookie = await click(link);
  const { status, text } = await visit("/", { cookie });
  assert.equal(status, 200, text);
  for (const name of names) assert.ok(text.includes(`<a href="/projects/${name}">${name}</a>`), name);
});

test("remove takes a project away, and leaves the others alone", { skip }, async () => {
  const answers = [{ question: /\?[^?]*$/, text: "y" }];
  await succeed("/srv/twin", "hotpush remove", answers);
  for (const host of projects.twin.hosts)
    await until(`nothing at ${host}`, async () => (await ask(host).catch(() => null))?.status === 404);
  assert.equal(await versionAt("store.test"), "2");
});

async function succeed(directory: string, command: string, answers?: readonly Answer[]): Promise<string> {
  const { code, stdout, output } = await server.type(directory, command, answers);
  assert.equal(code, 0, `${command}\n${output}`);
  return stdout;
}

function origin(): string {
  return `http://${server.address}`;
}

function ask(host: string) {
  return sendHttp(new URL(origin()), { headers: { host }, timeoutMs: 10_000 });
}

async function versionAt(host: string): Promise<string> {
  return String((await ask(host)).body).split(" ")[0] ?? "";
}

/** Makes a bare repository, a clone of a developer's, and the server's checkout. */
async function makeRepository(name: Name): Promise<void> {
  const { owner, services } = projects[name];
  const developer = server.file(`/srv/developer/${name}`);
  await mkdir(developer, { recursive: true });
  await cp(join(import.meta.dirname, "../lab/app"), join(developer, "app"), { recursive: true });
  await writeFile(join(developer, "compose.yaml"), JSON.stringify({ services }));
  await writeVersion(name, "1");
  const bare = `/srv/git/octo/${name}.git`;
  await succeed(
    `/srv/developer/${name}`,
    `git init --quiet --bare --initial-branch=main ${bare} && git init --quiet --initial-branch=main && git remote add origin ${bare} && ${commitAndPush("1")} && git clone --quiet ${bare} /srv/${name} && chown --recursive ${owner}: ${bare} /srv/${name} /srv/developer/${name}`,
  );
}

function writeVersion(name: Name, version: string): Promise<void> {
  const text = JSON.stringify({ version, behaviour: "finishes-requests" });
  return writeFile(server.file(`/srv/developer/${name}/app/behaviour.json`), text);
}

function commitAndPush(version: string): string {
  const ada = "-c user.name=Ada -c user.email=ada@example.com";
  return `git add --all && git ${ada} commit --quiet --message "Version ${version}" && git push --quiet origin main && git rev-parse HEAD`;
}

/** Pushes as a developer, and delivers that as a git host does. @returns the number of the deployment */
async function push(name: Name, version: string): Promise<number> {
  await writeVersion(name, version);
  const command = `runuser --user ${projects[name].owner} -- bash -c '${commitAndPush(version)}'`;
  const commit = (await succeed(`/srv/developer/${name}`, command)).trim();
  const { payloadUrl, secret } = forms.get(name) ?? { payloadUrl: "", secret: "" };
  const { host, pathname } = new URL(payloadUrl);
  const { headers, body } = githubPush({ after: commit, repository: `octo/${name}` }, secret);
  const request = { method: "POST", headers: { ...headers, host }, body };
  const answer = await sendHttp(new URL(pathname, origin()), request);
  assert.equal(answer.status, 202, String(answer.body));
  return JSON.parse(String(answer.body)).deployment.id;
}

async function endOf(name: Name, id: number): Promise<string | null> {
  const { deployments } = JSON.parse(await succeed(`/srv/${name}`, "hotpush history --json"));
  const { state } = deployments.find((one: { readonly id: number }) => one.id === id) ?? { state: "queued" };
  return ["queued", "running", "interrupted"].includes(state) ? null : state;
}

async function visit(path: string, headers: Readonly<Record<string, string>> = {}) {
  const request = { headers: { host: pageName, ...headers }, timeoutMs: 10_000, acceptsAnyCertificate: true };
  const { status, body } = await sendHttp(new URL(path, `https://${server.address}`), request);
  return { status, text: String(body) };
}

/** @returns the cookie of the session that the link's button opens */
async function click(link: URL): Promise<string> {
  const { status, headers } = await sendHttp(new URL(`https://${server.address}/sign-in`), {
    method: "POST",
    headers: { host: pageName, origin: link.origin },
    body: String(new URLSearchParams({ link: link.searchParams.get("link") ?? "" })),
    timeoutMs: 10_000,
    acceptsAnyCertificate: true,
  });
  assert.equal(status, 303);
  return headers["set-cookie"]?.[0]?.split(";")[0] ?? "";
}

/** The commands in the first block of the README after a text in it, by default those that set a project up. */
async function readmeCommands(after = "## Set it up"): Promise<readonly string[]> {
  const readme = await readFile(join(import.meta.dirname, "../../README.md"), "utf8");
  const from = readme.indexOf(after);
  assert.notEqual(from, -1, `README.md does not say: ${after}`);
  const block = /```sh\n(.*?)```/s.exec(readme.slice(from))?.[1] ?? "";
  return block.split("\n").filter((line) => line.trim() !== "");
}

/** The values that a person copies from the printed form to the git host. */
function readForm(printed: string) {
  const [, secret = ""] = /^ +Secret +([0-9a-f]{64})\r?$/m.exec(printed) ?? [];
  assert.notEqual(secret, "", printed);
  const [, shown = ""] = /^ +Payload URL +(\S.*?)\r?$/m.exec(printed) ?? [];
  return { payloadUrl: shown.replace("<this server>", "127.0.0.1"), secret };
}
