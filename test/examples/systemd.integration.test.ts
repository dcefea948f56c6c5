import "../harness/environment.ts";
import assert from "node:assert/strict";
import { execFileSync, spawn, spawnSync } from "node:child_process";
import {
  closeSync,
  cpSync,
  existsSync,
  mkdirSync,
  openSync,
  readdirSync,
  readFileSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { githubPush, testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import type { LogLine } from "../harness/processes.ts";
import { makeRepository } from "../harness/repository.ts";
import { needs } from "../harness/requirements.ts";
import { endProcess } from "../harness/service.ts";
import { type Scope, temporaryDirectory, writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

const checkout = fileURLToPath(new URL("../..", import.meta.url));

const examples = join(checkout, "examples/systemd");

/** Where the second systemd finds its control group, for both of the ways to mount them. */
const cgroups = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].find((path) =>
  existsSync(`${path}/cgroup.procs`),
);

for (const unit of readdirSync(examples)) {
  test(`systemd finds no fault in ${unit}`, needs("systemd"), (t) => {
    const path = join(temporaryDirectory(t), unit);
    const program = "/opt/hotpush/node_modules/.bin/node";
    writeFileSync(path, readFileSync(join(examples, unit), "utf8").replaceAll(program, process.execPath));
    assert.equal(analyze("verify", "--man=no", "--recursive-errors=no", path), "");
  });
}

test("the unit that faces the internet is exposed to at most 1.4 of 10", needs("systemd"), () => {
  const unit = join(examples, "hotpush-front.service");
  const report = analyze("security", "--offline=yes", unit);
  const level = Number(/exposure level for \S+: ([\d.]+)/.exec(report)?.[1]);
  // Versions of systemd differ by a few tenths.
  assert.ok(level <= 1.4, `${level}`);
  assert.match(report, /IPAddressDeny= .* only localhost entries/);
});

/** As the heads of the two units say, with a project whose script uses what only it may read. */
const setUp = (remote: string) => `
  groupadd --system hotpush
  useradd --system --create-home --home-dir /srv/home deploy
  usermod -aG hotpush deploy
  useradd --system --gid hotpush --no-create-home hotpush-front
  install -d -m 750 -g hotpush /etc/hotpush/projects
  install -d -m 700 -o deploy /etc/hotpush/secrets
  git clone --quiet ${remote} /srv/shop
  chown -R deploy /srv/shop ${remote}
  printf "REPO_PATH=/srv/shop\\nWEBHOOK_SECRET=${testSecret}\\n" >/etc/hotpush/projects/shop.env
  printf "TOKEN=only-for-the-script\\n" >/etc/hotpush/secrets/shop.env
  chmod 640 /etc/hotpush/projects/shop.env
  chgrp hotpush /etc/hotpush/projects/shop.env
  chmod 600 /etc/hotpush/secrets/shop.env
  chown deploy /etc/hotpush/secrets/shop.env
  install -m 666 /dev/null /run/docker.sock`;

test("the units of systemd take and deploy a push", { skip: cannotRunSystemd() }, async (t) => {
  const remote = makeRepository(t);
  remote.write(".gitignore", "\n");
  writeScript(
    `${remote.directory}/deploy.sh`,
    '#!/bin/sh\ngrep NoNewPrivs /proc/self/status\n[ "$TOKEN" = only-for-the-script ] && echo it has its token\n',
  );
  const commit = remote.commit();
  execFileSync("chmod", ["-R", "a+rX", `${remote.directory}/..`]);
  const port = await freePort();
  const units = ["hotpush-front", "hotpush-run"];
  const setting = `Environment=WEBHOOK_PORT=${port} GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*`;
  const systemd = startSystemd(t, units, setting, setUp(remote.directory));
  const wait = (what: string, ask: () => unknown) =>
    until(what, () => Boolean(ask())).catch(() => assert.fail(`${what}: not so\n${systemd.output()}`));
  const isThere = (unit: string, event: string) => systemd.logOf(unit).some((line) => line.event === event);
  for (const unit of units) await wait(`${unit} has started`, () => isThere(unit, "service.started"));

  const listening = execFileSync("ss", ["-Hltnp", `sport = :${port}`], { encoding: "utf8" });
  const pid = /pid=(\d+)/.exec(listening)?.[1];
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  for (const line of [
    /^Uid:\t(?!0\t)/m,
    /^CapEff:\t0+$/m,
    /^CapBnd:\t0+$/m,
    /^NoNewPrivs:\t1$/m,
    /^Seccomp:\t2$/m,
  ]) {
    assert.match(status, line);
  }
  const seen = (path: string) => `/proc/${pid}/root${path}`;
  assert.deepEqual(readdirSync(seen("/etc/hotpush/projects")), ["shop.env"]);
  assert.deepEqual(readdirSync(seen("/etc/hotpush/secrets")), [], "`front` sees no secret of a script");
  assert.equal(statSync(seen("/run/docker.sock")).mode & 0o777, 0, "`front` cannot open Docker's socket");
  assert.equal(existsSync(seen("/srv/shop")), true);

  const delivery = { method: "POST", ...githubPush({ after: commit }) };
  const response = await fetch(`http://127.0.0.1:${port}/webhook/shop`, delivery);
  assert.equal(response.status, 202, await response.text());
  const ended = () => systemd.logOf("hotpush-run").find(({ event }) => event === "deployment.succeeded");
  await wait("it is deployed", ended);
  const output = systemd
    .logOf("hotpush-run")
    .filter(({ event }) => event === "deployment.output")
    .map(({ msg }) => msg);
  assert.deepEqual(output, ["NoNewPrivs: 0", "it has its token"], "sudo works in a script");
});

function analyze(...args: readonly string[]): string {
  const { stdout, stderr } = spawnSync("systemd-analyze", ["--no-pager", ...args], { encoding: "utf8" });
  return stdout + stderr;
}

/** Why it cannot run here, or false. */
function cannotRunSystemd(): string | false {
  if (!existsSync("/lib/systemd/systemd") || cgroups === undefined) return "it needs systemd and cgroup2";
  const { status } = spawnSync("sh", ["-c", `unshare -mpfuiC true && mkdir ${cgroups}/hotpush-probe`]);
  spawnSync("rmdir", [`${cgroups}/hotpush-probe`]);
  return status === 0 ? false : "it starts a second systemd, which takes root";
}

/**
 * Starts a systemd that runs units of examples/systemd, in namespaces of its own, except for the network.
 * It ends with the test.
 *
 * @param setting a line for the section [Service] of each unit
 * @param prepare shell commands that prepare the machine, whose /etc and /srv are its own
 */
function startSystemd(scope: Scope, units: readonly string[], setting: string, prepare: string) {
  const directory = temporaryDirectory(scope);
  const logPath = (unit: string) => join(directory, `${unit}.log`);
  const own = join(directory, "units");
  for (const unit of units) {
    mkdirSync(join(own, `${unit}.service.d`), { recursive: true });
    cpSync(join(checkout, `examples/systemd/${unit}.service`), join(own, `${unit}.service`));
    const logs = ["Output", "Error"].map((stream) => `Standard${stream}=append:${logPath(unit)}`);
    const dropIn = ["[Unit]", "DefaultDependencies=no", "[Service]", setting, ...logs];
    writeFileSync(join(own, `${unit}.service.d/test.conf`), `${dropIn.join("\n")}\n`);
  }
  const wants = `Wants=${units.map((unit) => `${unit}.service`).join(" ")}`;
  writeFileSync(join(own, "hotpush-test.target"), `[Unit]\nDefaultDependencies=no\n${wants}\n`);
  const cgroup = `${cgroups}/hotpush-test-${process.pid}`;
  const script = [
    `mkdir ${cgroup} && echo $$ > ${cgroup}/cgroup.procs`,
    `exec unshare --kill-child -mpfuiC --propagation private sh -ec '${inside(directory, prepare)}'`,
  ];
  const printed = openSync(logPath("systemd"), "a");
  const child = spawn("sh", ["-ec", script.join("\n")], { stdio: ["ignore", printed, printed] });
  closeSync(printed);
  scope.after(async () => {
    await endProcess(child, "SIGKILL");
    spawnSync("sh", [
      "-c",
      `for _ in 1 2 3 4 5 6 7 8 9; do find ${cgroup} -depth -type d -exec rmdir {} + 2>/dev/null; [ -e ${cgroup} ] || break; sleep 0.1; done`,
    ]);
  });
  const read = (unit: string) => (existsSync(logPath(unit)) ? readFileSync(logPath(unit), "utf8") : "");
  return {
    logOf: (unit: string) =>
      read(unit)
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as LogLine),
    output: () => ["systemd", ...units].map(read).join("\n"),
  };
}

/** The settings of the machine's kernel stay as they are: systemd may not write them. */
function inside(directory: string, prepare: string): string {
  return `
    mount -t proc proc /proc
    mount --bind /proc/sys /proc/sys
    mount -o remount,ro,bind /proc/sys
    umount -R /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs /mnt
    mkdir /mnt/etc /mnt/work
    mount -t overlay -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work overlay /etc
    mount --bind ${directory}/units /etc/systemd/system
    for at in /run /opt /srv /var/lib /var/cache; do mount -t tmpfs -o mode=755 tmpfs $at; done
    mkdir /opt/hotpush
    mount --bind ${checkout} /opt/hotpush
    ln -s /dev/null /etc/systemd/system/network-online.target
    ${prepare}
    exec env -i container=other PATH=$PATH /lib/systemd/systemd --system --unit=hotpush-test.target \\
      --log-target=console --log-level=notice --show-status=0`;
}
