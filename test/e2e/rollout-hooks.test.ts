import assert from "node:assert/strict";
import { chmod, mkdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { writeScript } from "../harness/temporary.ts";
import { onEngine } from "../lab/on-engine.ts";
import { makeProject, outputOf, type TestProject } from "../lab/project.ts";

type Parts = Readonly<Record<string, unknown>>;

onEngine("what a compose file has a service do when it starts and stops", (env) => {
  let project: TestProject;
  let events: string;
  let bin: string;

  before(async () => {
    project = await makeProject(env);
    events = join(project.directory, "events");
    bin = join(project.directory, "bin");
    await mkdir(events);
  });
  after(() => project?.remove());

  test("hooks are executed after the start and before SIGTERM, as compose would", async () => {
    const post = { command: note("post_start") };
    const pre = {
      command: note("pre_stop $HOOK $(id -u) $PWD $APP"),
      user: "nobody",
      working_dir: "/tmp",
      environment: { HOOK: "of the file" },
    };
    await worker("1", { post_start: [post], pre_stop: [pre, { command: note("next"), privileged: true }] });
    assert.deepEqual(await happened(), ["post_start"]);
    const output = await worker("2", { post_start: [post], pre_stop: [pre] });
    assert.deepEqual(await happened(), ["post_start", "pre_stop of the file 65534 /tmp 1", "SIGTERM"]);
    assert.match(output, /worker +note +pre_stop of \S+-worker-1 \(sh\) ended with exit code 0$/m);
  });

  test("a pre_stop that fails is reported with its last line, and the container stops", async () => {
    const secret = "correct-horse-battery";
    const environment = { API_TOKEN: secret };
    const failing = { command: ["sh", "-c", "echo first >&2; echo no $$API_TOKEN >&2; exit 3"], environment };
    const hooks = { pre_stop: [failing, { command: note("not executed") }] };
    const output = await worker("3", hooks);
    assert.match(output, /worker +note +pre_stop of \S+ \(sh\) failed: exit code 3: no \*\*\*$/m);
    assert.doesNotMatch(output, new RegExp(secret));
    const missing = await worker("4", { pre_stop: [{ command: ["no-such-program"] }] });
    assert.match(missing, /worker +note +pre_stop of \S+ \(no-such-program\) failed: \S.*/m);
    assert.deepEqual(await happened(), ["SIGTERM"]);
    assert.equal((await project.containers("worker")).length, 1);
  });

  test("a pre_stop that hangs is given up after the stop grace period", async () => {
    const output = await worker("5", { pre_stop: [{ command: ["sleep", "300"] }] });
    assert.match(
      output,
      /worker +note +pre_stop of \S+ \(sleep\) did not end within 2 s, and was given up$/m,
    );
    assert.deepEqual(await happened(), ["SIGTERM"]);
  });

  test("a post_start that fails ends the roll-out, and the old container goes on", async () => {
    const old = await project.containers("worker");
    const output = await worker("unwanted", { post_start: [{ command: ["false"] }] }, 1);
    assert.match(output, /FAILED: (?:worker|One of \S+, \S+) was not started: \S+ hook exited with status 1/);
    assert.deepEqual(await project.containers("worker"), old);
  });

  test("an old container that is brought back after a failure has its post_start executed", async () => {
    const more = { post_start: [{ command: note("post_start") }], labels: { "hotpush.rollout": "recreate" } };
    await worker("6", more);
    const healthcheck = { test: ["CMD", "false"], interval: "200ms", retries: 1 };
    const output = await worker("7", { ...more, healthcheck }, 1);
    assert.match(output, /worker +note +post_start of \S+-worker-\d+ \(sh\) ended with exit code 0$/m);
    assert.deepEqual(await happened(), ["SIGTERM", "post_start", "SIGTERM", "post_start"]);
  });

  test("a provider is left to compose, which passes what it says to the services", async () => {
    await mkdir(bin);
    const says = '#!/bin/sh\necho \'{"type":"setenv","message":"URL=mysql://here"}\'\n';
    writeScript(join(bin, "cloud"), says);
    const database = { provider: { type: "cloud" } };
    for (const version of ["8", "9"]) {
      const output = await worker(version, { depends_on: ["database"] }, 0, { database });
      assert.doesNotMatch(output, /^ +database/m);
      const inIt = ["compose", "exec", "--no-TTY", "worker", "sh", "-c", "echo $DATABASE_URL $APP"];
      assert.equal(await project.docker(...inIt), `mysql://here ${version}`);
    }
  });

  /** A command of the compose file that writes a line to the events, in which a shell in the container expands. */
  function note(text: string): readonly string[] {
    return ["sh", "-c", `echo ${text.replaceAll("$", "$$$$")} >>/events/all`];
  }

  /** Rolls out another version of the worker. @returns the output */
  async function worker(version: string, more: Parts, code = 0, others: Parts = {}): Promise<string> {
    const service = {
      image: "debian:trixie-slim",
      command: ["sh", "-c", "trap 'echo SIGTERM >>/events/all; exit' TERM; sleep infinity & wait"],
      environment: { APP: version },
      stop_grace_period: "2s",
      volumes: ["./events:/events"],
      labels: { "hotpush.rollout": "live" },
      ...more,
    };
    await writeFile(
      join(project.directory, "compose.yaml"),
      JSON.stringify({ services: { worker: service, ...others } }),
    );
    await writeFile(join(events, "all"), "");
    await chmod(join(events, "all"), 0o666);
    return outputOf(project.rollOut({ env: { PATH: `${bin}:${env.PATH}` } }), code);
  }

  /** What happened during the last roll-out. */
  async function happened(): Promise<readonly string[]> {
    return (await readFile(join(events, "all"), "utf8")).split("\n").filter(Boolean);
  }
});
