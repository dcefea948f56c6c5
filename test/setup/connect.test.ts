import assert from "node:assert/strict";
import { copyFileSync, existsSync, lstatSync, realpathSync, rmSync, statSync } from "node:fs";
import { test } from "node:test";
import { type ConnectedProject, makeConnectedProject, signingToken } from "../harness/connected-project.ts";
import { type HostName, hostDescriptions } from "../harness/git-host-apis.ts";

const hosts = Object.keys(hostDescriptions) as readonly HostName[];
const stranger = { id: "1999", title: "of a person", key: "ssh-ed25519 AAAAC3strange", isReadOnly: false };
const otherHook = { id: "1998", url: "https://elsewhere.example.org/webhook", secret: "x" };

const checkEvents: Readonly<Record<HostName, readonly string[]>> = {
  github: ["push", "check_run", "check_suite", "status"],
  gitea: ["push", "status"],
  forgejo: ["push", "action_run_success"],
  gitlab: ["push_events", "pipeline_events", "job_events"],
  "bitbucket-cloud": ["repo:push", "repo:commit_status_created", "repo:commit_status_updated"],
};

for (const name of hosts) {
  test(`${name} gets one hook and one read-only key, by its own description`, async (t) => {
    const project = await makeConnectedProject(t, name);
    const { host, keyPath, webhookUrl } = project;
    host.hooks.push({ ...otherHook, id: hookId(name, 1998) });
    host.keys.push({ ...stranger });
    const { refusal, said } = await project.connect();
    assert.equal(refusal, null);
    assertConnected(project, said);
    assert.equal(statSync(keyPath).mode & 0o777, 0o600);
    // No image is built from there.
    assert.match(realpathSync(keyPath), new RegExp(`^${process.env.HOME}/\\.ssh/hotpush-shop-`));
    const key = own(project).keys[0];
    // Of the server before this one.
    for (const hook of own(project).hooks) hook.secret = "old";
    const again = await project.connect();
    assertConnected(project, again.said);
    assert.equal(own(project).keys[0], key);
    // A key that may write, and a filter that would hide main.
    const may = { ...stranger, key: key?.key ?? "", title: `Hotpush ${webhookUrl}` };
    // Bitbucket's can only read.
    host.keys.splice(0, 9, { ...may, isReadOnly: name === "bitbucket-cloud" });
    if (name === "gitlab") host.hooks[1] = { ...own(project).hooks[0], branchFilter: "release-*" } as never;
    assertConnected(project, (await project.connect()).said);
    assert.equal(own(project).hooks[0]?.branchFilter, undefined);
  });

  test(`${name}: DEPLOY_AFTER asks for checks, and --remove takes away nothing of others`, async (t) => {
    const project = await makeConnectedProject(t, name);
    const { host, keyPath, repository, server, webhookUrl } = project;
    host.hooks.push({ ...otherHook, id: hookId(name, 1998) });
    host.keys.push({ ...stranger });
    const settings = { WEBHOOK_SECRET: signingToken, WEBHOOK_URL: webhookUrl, HOTPUSH_GIT_HOST: name };
    server.addProject("shop", repository.directory, { ...settings, DEPLOY_AFTER: "checks" });
    assert.match((await project.connect()).said.join(), /sends the pushes and checks of octo\/shop/);
    assert.deepEqual(own(project).hooks[0]?.events, checkEvents[name]);
    server.addProject("shop", repository.directory, settings);
    await project.connect();
    assert.deepEqual(own(project).hooks[0]?.events, checkEvents[name].slice(0, 1));
    assert.match(repository.git("config", "core.sshCommand"), /hotpush-deploy-key/);
    for (const code of [0, 0]) assert.equal((await project.connect({ remove: true })).code, code);
    assert.deepEqual([host.hooks.length, host.keys.length], [1, 1]);
    assert.ok(!existsSync(keyPath));
    assert.throws(() => repository.git("config", "core.sshCommand"));
    assert.deepEqual(host.faults, []);
  });
}

test("a key that is in .git moves to its owner's home, and stays the same key", async (t) => {
  const { host, keyPath, connect } = await makeConnectedProject(t, "github");
  await connect();
  const [key] = host.keys;
  const home = realpathSync(keyPath);
  rmSync(keyPath);
  copyFileSync(home, keyPath);
  rmSync(home);
  assert.equal((await connect()).refusal, null);
  assert.deepEqual(host.keys, [key]);
  assert.deepEqual([lstatSync(keyPath).isSymbolicLink(), realpathSync(keyPath)], [true, home]);
});

test("a checkout that was copied with its key takes that from no other server", async (t) => {
  const { host, repository, server, connect } = await makeConnectedProject(t, "github");
  await connect();
  const [first] = host.keys;
  const settings = { WEBHOOK_SECRET: signingToken, WEBHOOK_URL: "https://two.example.org/webhook/shop" };
  server.addProject("shop", repository.directory, { ...settings, HOTPUSH_GIT_HOST: "github" });
  assert.equal((await connect()).refusal, null);
  await connect({ remove: true });
  assert.deepEqual(host.keys, [first]);
});

test("a token goes nowhere in plain text unless --repository says so", async (t) => {
  const project = await makeConnectedProject(t, "gitea");
  const address = project.host.address.replace(/^gitea\+/, "");
  project.repository.git("remote", "set-url", "origin", `${address}.git`);
  const { refusal } = await project.connect({ repository: undefined } as never);
  assert.match(refusal ?? "", /in plain text\. If that is meant: --repository gitea\+http:/);
  assert.deepEqual(project.host.calls, []);
});

test("a token goes to no host that only the checkout names", async (t) => {
  const project = await makeConnectedProject(t, "gitlab");
  project.repository.git("remote", "set-url", "origin", "git@gitlab.evil.example:octo/shop.git");
  const { refusal } = await project.connect({ repository: undefined } as never);
  assert.match(refusal ?? "", /--repository gitlab\+https:\/\/gitlab\.evil\.example\/octo\/shop$/);
});

test("a project whose checkout is gone touches no other checkout", async (t) => {
  const project = await makeConnectedProject(t, "gitea");
  project.server.addProject("shop", "/nowhere", {
    WEBHOOK_SECRET: signingToken,
    WEBHOOK_URL: project.webhookUrl,
  });
  for (const remove of [false, true])
    assert.match((await project.connect({ remove })).refusal ?? "", /\/nowhere, is not there/);
  assert.deepEqual(project.host.calls, []);
});

test("GitLab before 19.0, which would not sign, is refused, and its hook taken away", async (t) => {
  const { host, keyPath, connect } = await makeConnectedProject(t, "gitlab");
  host.isOld = true;
  assert.match((await connect()).refusal ?? "", /^[^\n]+GitLab 19\.0[^\n]+$/);
  assert.deepEqual([host.hooks, host.keys, host.faults, existsSync(keyPath)], [[], [], [], false]);
});

for (const [claim, name, options, says, more] of [
  ["a secret that GitLab cannot sign with", "gitlab", {}, /whsec_.+hotpush secret rotate --stdin/, {}],
  ["--redeliver without a call for it", "gitea", { redeliver: true }, /hotpush deploy$/, {}],
  ["a repository that was renamed", "github", {}, /: REPOSITORY=octo\/shop$/, { REPOSITORY: "octo/old" }],
] as const)
  test(`${claim} is refused before the host is asked`, async (t) => {
    const { host, server, repository, webhookUrl, connect } = await makeConnectedProject(t, name);
    const settings = { WEBHOOK_URL: webhookUrl, HOTPUSH_GIT_HOST: name, ...more };
    server.addProject("shop", repository.directory, settings);
    assert.match((await connect(options)).refusal ?? "", says);
    assert.deepEqual(host.calls, []);
  });

test("GitHub's ping that got no answer is told, and the hook stays", async (t) => {
  const project = await makeConnectedProject(t, "github");
  project.host.answeredStatus = 502;
  const { code, said } = await project.connect();
  assert.equal(code, 75);
  assert.match(said.at(-1) ?? "", /ping was answered with 502.+hotpush doctor/);
  assert.equal(project.host.hooks.length, 1);
});

for (const name of ["github", "gitlab"] as const)
  test(`${name}: --redeliver has it send again what failed and has not arrived since`, async (t) => {
    const project = await makeConnectedProject(t, name);
    const { host } = project;
    await project.connect();
    const rows = { lost: 0, refused: 502, repaired: 200, ping: 500, fine: 202 };
    for (const [guid, status] of Object.entries({ ...rows, before: 500 }))
      host.deliveries.push({
        id: String(2000 + host.deliveries.length),
        guid: guid === "before" ? "repaired" : guid,
        event: guid === "ping" ? "ping" : "push",
        status,
      });
    const first = await project.connect({ redeliver: true });
    assert.deepEqual([first.code, first.refusal, host.faults], [0, null, []]);
    assert.match(first.said.join(), /push of 2026-11-25 20:00 UTC, answered with 502; .+not answered/);
    assert.deepEqual(
      host.deliveries.slice(0, 2).map(({ guid }) => guid),
      ["lost", "refused"],
      "the oldest first",
    );
    const calls = host.calls.length;
    assert.equal((await project.connect({ redeliver: true })).code, 0);
    assert.equal(host.calls.length, calls + 3, "hooks twice, and deliveries");
    host.hooks.length = 0;
    assert.match(
      (await project.connect({ redeliver: true })).refusal ?? "",
      /no webhook to .+hotpush connect$/,
    );
  });

test("without a token the form is shown, and nothing is asked", async (t) => {
  const project = await makeConnectedProject(t, "gitea");
  assert.deepEqual(await project.connect({}, null), {
    code: 75,
    said: ["the form"],
    refusal: null,
    fault: null,
  });
  for (const options of [{ remove: true }, { redeliver: true }]) {
    const { said, code } = await project.connect(options, null);
    assert.match(said.join(), /--token-file/);
    assert.equal(code, 1);
  }
  assert.deepEqual(project.host.calls, []);
});

test("a remote by https, or --no-key, gets no key", async (t) => {
  const project = await makeConnectedProject(t, "gitea");
  await project.connect({ key: false });
  project.repository.git("remote", "set-url", "origin", "http://127.0.0.1:1/octo/shop.git");
  await project.connect();
  assert.deepEqual([project.host.hooks.length, project.host.keys.length], [1, 0]);
  assert.ok(!existsSync(project.keyPath));
});

/** The hook and the key that are not of others. */
function own({ host, webhookUrl }: ConnectedProject) {
  return {
    hooks: host.hooks.filter(({ url }) => url === webhookUrl),
    keys: host.keys.filter(({ title }) => title !== stranger.title),
  };
}

function assertConnected(project: ConnectedProject, said: readonly string[]): void {
  const { hooks, keys } = own(project);
  assert.deepEqual(project.host.faults, []);
  const found = [hooks.map(({ secret }) => secret), keys.map(({ isReadOnly }) => isReadOnly)];
  assert.deepEqual(found, [[signingToken], [true]], said.join("\n"));
  assert.ok(keys[0]?.key.startsWith("ssh-ed25519 "));
}

function hookId(name: HostName, id: number): string {
  return name === "bitbucket-cloud" ? `{${id}-uuid}` : String(id);
}
