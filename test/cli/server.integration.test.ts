import assert from "node:assert/strict";
import { chmodSync, writeFileSync } from "node:fs";
import { createServer as createHttpServer } from "node:http";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import { deliver, githubPush } from "../harness/delivery.ts";
import { hotpush, runCli } from "../harness/hotpush.ts";
import { freePort, listenHere } from "../harness/listen.ts";
import { makeToken, startPage } from "../harness/page.ts";
import { untilDeployment } from "../harness/records.ts";
import { makeProject } from "../harness/repository.ts";
import { quickScript, startService } from "../harness/service.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** A machine with a page, and a laptop that has nothing but its address and a token. */
async function start(t: TestContext) {
  const project = makeProject(t);
  project.script(quickScript);
  const service = await startService(t, { repoPath: project.repoPath });
  const page = await startPage(t, service);
  const file = join(temporaryDirectory(t), "token");
  const token = await makeToken(service, "operator");
  writeFileSync(file, token, { mode: 0o600 });
  const server = `http://localhost:${page.port}`;
  const there = (...args: readonly string[]) => hotpush(service, ...args);
  const here = (...args: readonly string[]) =>
    onLaptop(t, ["--server", server, "--token-file", file, ...args]);
  return { service, file, server, there, here };
}

function onLaptop(t: TestContext, args: readonly string[], env: Readonly<Record<string, string>> = {}) {
  return runCli(args, { cwd: temporaryDirectory(t), env: { USER: "ann", ...env } });
}

test("on a laptop, commands print what they print on the server", async (t) => {
  const { service, here, there } = await start(t);
  await deliver(service.url, githubPush());
  await untilDeployment(service.statePath, 1, ({ state }) => state === "succeeded");
  for (const args of [["history"], ["history", "--json"], ["logs", "1"], ["logs"], ["status", "--json"]])
    assert.deepEqual(await here(...args), await there(...args), args.join(" "));
  const deployed = await here("deploy");
  assert.equal(deployed.code, 0, deployed.stderr);
  assert.match(deployed.stdout, /^Deployment 2 deploys main at /);
  const { stdout } = await there("history", "--json");
  assert.equal(JSON.parse(stdout).deployments[0].requestedBy.name, "operator's token (token 2)");
  assert.equal((await here("cancel", "2")).code, 1);
});

test("what is wrong with the address, the token or the command is said", async (t) => {
  const { service, file, server, here } = await start(t);
  const wrong = async (args: readonly string[], why: RegExp) => {
    const { code, stderr } = await onLaptop(t, args);
    assert.equal(code, 1);
    assert.match(stderr, why);
  };
  await wrong(["--server", server, "status"], /A token is missing\. On the server: hotpush open --token/);
  const other = createHttpServer((_, response) => {
    response.setHeader("content-type", "text/html").end("<h1>Welcome</h1>");
  });
  const withToken = (address: string) => ["--server", address, "--token-file", file, "status"];
  await wrong(withToken("http://example.com"), /write the address of its page/);
  await wrong(withToken("https://nothing.invalid"), /nothing\.invalid cannot be reached/);
  await wrong(withToken(`http://localhost:${await freePort()}`), / cannot be reached: /);
  await wrong(withToken(`http://localhost:${service.port}`), /This service has two paths: POST \/webhook/);
  await wrong(withToken(`http://localhost:${await listenHere(t, other)}`), /not like the page of a Hotpush/);
  for (const command of ["open", "rollout"])
    assert.match((await here(command)).stderr, /acts only on the machine of the service/);
  writeFileSync(file, await makeToken(service, "viewer"));
  assert.match((await here("deploy")).stderr, /This takes an operator, .*: viewer's token may only look\./);
  writeFileSync(file, "hp_unknown");
  await wrong(withToken(server), /does not know this token/);
  chmodSync(file, 0o644);
  await wrong(withToken(server), /Other users can read .+\. Run: chmod 600/);
});

const macos = {
  NODE_OPTIONS: `--import=${pathToFileURL(join(import.meta.dirname, "on-macos.ts"))}`,
};

test("on macOS, commands call the service of a server", async (t) => {
  const { server, file } = await start(t);
  const { code, stdout, stderr } = await onLaptop(
    t,
    ["--server", server, "--token-file", file, "status"],
    macos,
  );
  assert.deepEqual({ code, stderr }, { code: 0, stderr: "" }, stdout);
});

test("on macOS, the service and what sets a server up refuse with a sentence", async (t) => {
  for (const [args, wanted] of [
    [[], 78],
    [["front"], 78],
    [["run"], 78],
    [["init", "--yes"], 1],
    [["rollout"], 1],
  ] as const) {
    const { code, stderr } = await onLaptop(t, args, macos);
    assert.equal(code, wanted, stderr);
    assert.match(stderr, /^hotpush: This is darwin[^\n]*/);
  }
});
