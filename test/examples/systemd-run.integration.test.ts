import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { test } from "node:test";
import { githubPush, testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import { makeRepository } from "../harness/repository.ts";
import { cannotRunSystemd, startSystemd } from "../harness/systemd.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";

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
  touch /run/docker.sock`;

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
  const lines = [
    `Environment=WEBHOOK_PORT=${port} GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=safe.directory GIT_CONFIG_VALUE_0=*`,
  ];
  const systemd = startSystemd(t, { units, lines, prepare: setUp(remote.directory) });
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
