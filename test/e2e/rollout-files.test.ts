import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { onEngine } from "../lab/on-engine.ts";
import { outputOf } from "../lab/project.ts";
import { makeRolledProject, type RolledProject } from "../lab/rolled-project.ts";

const run = promisify(execFile);

onEngine("what a container is started from besides its image, on a real engine", (env) => {
  let project: RolledProject;
  const git = (...args: readonly string[]) =>
    run("git", ["-c", "user.name=Ada", "-c", "user.email=a@example.org", ...args], {
      cwd: project.directory,
    });
  const write = async (path: string, text: string) => {
    const file = join(project.directory, path);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, text);
  };
  const commit = async (path: string, text: string) => {
    await write(path, text);
    await git("add", "conf", "src");
    await git("commit", "--message", path);
  };
  const sleeper = {
    image: "debian:trixie-slim",
    command: ["sleep", "infinity"],
    init: true,
    healthcheck: { test: ["CMD", "true"], start_period: "10s", start_interval: "200ms" },
  };
  const single = { ...sleeper, labels: { "hotpush.rollout": "recreate" } };
  const has = (services: object, rest: object = {}) =>
    write("compose.override.yaml", JSON.stringify({ services, ...rest }));
  /** Rolls a service out, and gives its containers before and after. */
  const rollOut = async (...services: readonly string[]) => {
    const [name = ""] = services;
    const old = await project.containers(name);
    const output = await outputOf(project.rollOut({ args: services }));
    return { output, old, now: await project.containers(name) };
  };

  before(async () => {
    project = await makeRolledProject(env);
    await git("init", "--initial-branch", "main");
    await write(".gitignore", "*.log\n");
    await write("conf/app.conf", "one");
    await commit("src/app.js", "one");
  });
  after(() => project?.remove());

  test("a changed mounted file or directory replaces the service, and is named; an unchanged one leaves it", async () => {
    const volumes = ["./conf:/conf:ro", "./src/app.js:/app.js"];
    const services = { mounts: { ...sleeper, volumes }, single: { ...single, volumes } };
    await has(services);
    await rollOut("mounts", "single");
    await write("conf/untracked.log", "data");
    await commit("src/elsewhere", "");
    assert.deepEqual((await rollOut("mounts", "single")).output.match(/unchanged/g)?.length, 2);
    await commit("conf/app.conf", "two");
    const { output, old, now } = await rollOut("mounts", "single");
    assert.match(output, /^ +mounts +note +is replaced: conf changed$/m);
    assert.match(output, /^ +mounts +rolled/m);
    assert.match(output, /^ +single +recreated/m);
    assert.notDeepEqual(now, old);
    await commit("src/app.js", "two");
    assert.match((await rollOut("mounts")).output, /is replaced: src\/app.js changed/);
    assert.match((await rollOut("mounts")).output, /^ +mounts +unchanged/m);
  });

  test("a container that a user started is replaced if it can be rolled, else named", async () => {
    const up = ["compose", "up", "--detach", "--no-deps", "--force-recreate", "mounts", "single"];
    await project.docker(...up);
    const recreated = await project.containers("single");
    const { output } = await rollOut("mounts", "single");
    assert.match(output, /^ +mounts +note +is replaced: whether .* conf, src\/app.js is not known$/m);
    assert.match(
      output,
      /^ +single +note +stays: whether .*docker compose stop single && hotpush rollout single$/m,
    );
    assert.deepEqual(await project.containers("single"), recreated);
    assert.match((await rollOut("single")).output, /^ +single +note +stays: whether/m);
    await project.docker("compose", "stop", "single");
    await rollOut("single");
    assert.doesNotMatch((await rollOut("single")).output, /stays: whether/);
  });

  test("a service that a failed roll-out recreated is replaced again when its files change again", async () => {
    const volumes = ["./conf:/conf:ro"];
    const bad = { ...sleeper, command: ["false"], depends_on: ["single"] };
    await has({ single: { ...single, volumes }, bad });
    await outputOf(project.rollOut({ args: ["single"] }));
    await commit("conf/app.conf", "bad");
    const old = await project.containers("single");
    await outputOf(project.rollOut({ args: ["single", "bad"] }), 1);
    assert.notDeepEqual(await project.containers("single"), old);
    await git("revert", "--no-edit", "HEAD");
    assert.match((await rollOut("single")).output, /^ +single +note +is replaced: conf changed$/m);
    await project.docker("compose", "rm", "--force", "--stop", "bad");
  });

  test("a changed inline config or secret replaces the service", async () => {
    const services = { inline: { ...sleeper, configs: ["text"], secrets: ["variable"] } };
    const secrets = { variable: { environment: "MOTD" } };
    const text = (content: string) => has(services, { secrets, configs: { text: { content } } });
    await write(".env", "MOTD=one\n");
    await text("one");
    await rollOut("inline");
    assert.match((await rollOut("inline")).output, /^ +inline +unchanged/m);
    await text("two");
    assert.match((await rollOut("inline")).output, /^ +inline +note +is replaced: config text changed$/m);
    await write(".env", "MOTD=two\n");
    assert.match((await rollOut("inline")).output, /^ +inline +note +is replaced: secret variable changed$/m);
    const read = ["compose", "exec", "-T", "inline", "cat", "/text", "/run/secrets/variable"];
    assert.equal(await project.docker(...read), "twotwo");
  });

  test("mounted sources are code while git knows all of them, else data", async () => {
    await has({ code: { ...sleeper, volumes: ["./src:/src"] } });
    await rollOut("code");
    await commit("src/app.js", "three");
    assert.match((await rollOut("code")).output, /^ +code +rolled/m);
    await write("src/app.log", "data");
    await commit("src/app.js", "four");
    assert.match((await rollOut("code")).output, /^ +code +recreated .*volume \/src/m);
  });

  test("a changed volume ends the roll-out before any change; one of another name is mounted", async () => {
    const services = { stored: { ...sleeper, volumes: ["data:/data"] } };
    await has(services, { volumes: { data: { labels: { kept: "$$1" } } } });
    await rollOut("stored");
    assert.match((await rollOut("stored")).output, /^ +stored +unchanged/m);
    const [container] = await project.containers("stored");
    await has(services, { volumes: { data: { labels: { kept: "2" } } } });
    const refused = await outputOf(project.rollOut({ args: ["stored", "--json"] }), 1);
    assert.match(refused, /"code":"volume_changed"/);
    assert.match(refused, /"evidence":\["volume \S+_data: labels changed"\]/);
    assert.deepEqual(await project.containers("stored"), [container]);
    await has(services, { volumes: { data: { name: `${project.name}_other` } } });
    const { now } = await rollOut("stored");
    const format = "{{range .Mounts}}{{.Name}}{{end}}";
    const mounted = await project.docker("inspect", `${now[0]?.split(" ")[0]}`, "--format", format);
    assert.equal(mounted, `${project.name}_other`);
  });

  test("a network of another name ends the roll-out before any change", async () => {
    const services = { joined: { ...sleeper, networks: ["inner"] } };
    await has(services, { networks: { inner: {} } });
    const { now } = await rollOut("joined");
    await project.docker("network", "create", `outer-${project.name}`);
    await has(services, { networks: { inner: { external: true, name: `outer-${project.name}` } } });
    assert.match(
      await outputOf(project.rollOut({ args: ["joined", "--json"] }), 1),
      /"code":"network_changed"/,
    );
    assert.deepEqual(await project.containers("joined"), now);
    await has({});
    await project.docker("network", "rm", `outer-${project.name}`);
  });

  test("a service in the namespace of another one is left if neither changed", async () => {
    const bound = { ...sleeper, pid: "service:target", volumes_from: ["target"] };
    await has({ target: single, bound });
    await rollOut("target", "bound");
    assert.match((await rollOut("bound")).output, /^ +bound +unchanged/m);
    await has({ target: { ...single, environment: { N: "2" } }, bound });
    const { output } = await rollOut("target", "bound");
    assert.match(output, /^ +target +recreated/m);
    assert.match(output, /^ +bound +(?:recreated|started)/m);
  });

  test("a roll back names the files that it does not bring back", async () => {
    await has({ app: { volumes: ["./conf:/conf:ro"] } });
    await outputOf(project.deploy("mounted", "graceful"));
    await commit("conf/app.conf", "three");
    await outputOf(project.deploy("later", "graceful"));
    const output = await outputOf(project.rollOut({ args: ["--back"] }));
    assert.match(output, /^ +app +note +conf stays as in the checkout/m);
    assert.equal(await project.version(), "mounted");
  });
});
