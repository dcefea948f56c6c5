import assert from "node:assert/strict";
import { mkdirSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { gitHosts } from "../../src/front/webhook/git-hosts.ts";
import { countingLines } from "../../src/rollout/requests.ts";
import type { ServerPlace } from "../../src/setup/machine.ts";
import {
  hostsLeft,
  renewedComposeFile,
  serverCaddyfile,
  serverComposeFile,
  withCheckoutPath,
  withHost,
  withoutMissing,
} from "../../src/setup/server-files.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const fresh = serverComposeFile(["/srv"]);
const twoPaths = serverComposeFile(["/srv", "/home"]);

test("a checkout that run does not have is added to it at its own path, and nothing else changes", () => {
  assert.equal(withCheckoutPath(fresh, "/srv/shop", false), fresh);
  assert.notEqual(withCheckoutPath(fresh, "/srvs/shop", false), fresh);
  const changed = fresh.replace("    tmpfs: [/tmp]\n", "    # mine\n    tmpfs: []\n    cpus: 2\n");
  const text = withCheckoutPath(changed, '/data/my "shop" $1', true);
  const { volumes } = parse(text).services.run;
  const path = '/data/my "shop" $$1';
  assert.deepEqual(volumes.at(-1), { type: "bind", source: path, target: path, read_only: true });
  const after = text.split("\n").values();
  for (const line of changed.split("\n"))
    assert.ok(
      after.some((one) => one === line),
      line,
    );
});

test("a checkout in a directory that run may only read gets a place of its own that it may write to", () => {
  const whole = { type: "bind", source: "/data", target: "/data" };
  const shop = { type: "bind", source: "/data/shop", target: "/data/shop" };
  const parent = withCheckoutPath(fresh, "/data", true);
  const added = withCheckoutPath(parent, "/data/shop", false);
  const volumesOf = (text: string) => parse(text).services.run.volumes;
  assert.deepEqual(volumesOf(added).slice(-2), [{ ...whole, read_only: true }, shop]);
  assert.equal(withCheckoutPath(added, "/data/shop/lib", false), added);
  assert.equal(withCheckoutPath(added, "/data/lib", true), added);
  const renewed = volumesOf(withCheckoutPath(parent, "/data", false));
  assert.deepEqual([renewed.length, renewed.at(-1)], [volumesOf(parent).length, whole]);
});

test("what run may only read is left out once the machine has it no more", (t) => {
  const here = temporaryDirectory(t);
  const present = withCheckoutPath(withCheckoutPath(fresh, "/gone/checkout", false), `${here}/$1`, true);
  mkdirSync(`${here}/$1`);
  const short = present.replace(
    "      # Whole:",
    "      - data:/y:ro\n      - $$X/gone:/x:ro\n      # Whole:",
  );
  assert.equal(withoutMissing(short), short);
  const paths = ["/gone/a", "/gone/b"].reduce((text, path) => withCheckoutPath(text, path, true), present);
  assert.equal(withoutMissing(paths), present);
});

test("with remapped users, the containers of the server share files with the machine all the same", () => {
  const services: Readonly<Record<string, { readonly userns_mode?: string }>> = parse(fresh).services;
  for (const [name, service] of Object.entries(services)) assert.equal(service.userns_mode, "host", name);
});

test("front has nothing of the machine but its state, the projects, and the directory of a socket of run", () => {
  const { front, run, caddy } = parse(fresh).services;
  assert.deepEqual(
    front.volumes.map(
      ({ target, read_only = false }: { target: string; read_only?: boolean }) => `${target} ${read_only}`,
    ),
    // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it
    ["${SERVER_PATH}/projects true", "/state false", "/socket true"],
  );
  assert.deepEqual(front.networks, { "hotpush-front": { aliases: ["front.hotpush.containers.internal"] } });
  assert.deepEqual([front.cap_drop, front.read_only], [["ALL"], true]);
  assert.equal(front.volumes[2].source, dirname(run.environment.FRONT_SOCKET));
  assert.equal(`${front.volumes[1].source}/spool`, run.environment.SPOOL_PATH);
  assert.equal(run.ports, undefined);
  assert.ok(!JSON.stringify(caddy.volumes).includes("docker.sock"));
});

test("the server logs what is logged by hand, so nothing that identifies a person", () => {
  const [, counted = ""] = /^\(counted\) \{\n([\s\S]*?)\n\}/m.exec(serverCaddyfile()) ?? [];
  const lines = counted.split("\n").filter((line) => !line.startsWith("\t#"));
  const own = lines.map((line) => line.slice(1).replace("/{args[0]}", ""));
  assert.deepEqual(own, countingLines);
});

test("a request that a container has begun to answer is never sent to another one", () => {
  const [, retry = ""] = /@unreached \{([\s\S]*?)\n\t\t\}/.exec(serverCaddyfile()) ?? [];
  assert.match(retry, /\.contains\("dial"\)/);
  assert.match(retry, /not vars delivery yes/, "nor is a delivery sent to the app");
});

test("on an app's address, Caddy knows a delivery by the header that each git host names its event with", () => {
  const [, deliveries = ""] = /^\(deliveries_at\) \{\n([\s\S]*?)\n\}/m.exec(serverCaddyfile()) ?? [];
  const names = [...deliveries.matchAll(/header\(\{"(.*?)": "\*"\}\)/g)].map(([, name = ""]) =>
    name.toLowerCase(),
  );
  assert.deepEqual(new Set(names), new Set(gitHosts.map(({ eventHeader }) => eventHeader)));
});

test("checkouts that were added for projects stay", () => {
  assert.equal(renewedComposeFile(twoPaths), twoPaths);
  const added = withCheckoutPath(twoPaths, "/data/shop", false);
  assert.equal(renewedComposeFile(added), serverComposeFile(["/srv", "/home", "/data/shop"]));
  const readOnly = withCheckoutPath(twoPaths, "/mirror/shop.git", true);
  assert.equal(renewedComposeFile(readOnly), readOnly);
  const named = withHost(readOnly, "git.lan", "10.0.0.5");
  assert.equal(renewedComposeFile(named), named);
});

test("a name of this machine's hosts file is added to run, also beside those of a person, and follows its address", () => {
  const hostsOf = (text: string) => parse(text).services.run.extra_hosts;
  const added = withHost(fresh, "git.lan", "10.0.0.5");
  assert.deepEqual(hostsOf(added), { "git.lan": "10.0.0.5" });
  assert.equal(withHost(added, "git.lan", "10.0.0.5"), added);
  assert.deepEqual(hostsOf(withHost(added, "git.lan", "10.0.0.6")), { "git.lan": "10.0.0.6" });
  const list = fresh.replace("    cap_add:", "    extra_hosts: [mine:10.0.0.1]\n    cap_add:");
  assert.deepEqual(hostsOf(withHost(list, "git.lan", "10.0.0.5")), ["mine:10.0.0.1", "git.lan:10.0.0.5"]);
});

test("a name that run has, and this machine's hosts file does not have any more, is found", (t) => {
  const composeFile = join(temporaryDirectory(t), "compose.yaml");
  const left = (text: string, name: string) => {
    writeFileSync(composeFile, text);
    return hostsLeft({ files: { composeFile } as ServerPlace["files"] }, name);
  };
  const list = fresh.replace("    cap_add:", "    extra_hosts: ['git.lan:10.0.0.5']\n    cap_add:");
  for (const text of [withHost(fresh, "git.lan", "10.0.0.5"), list]) {
    assert.equal(left(text, "git.lan"), "10.0.0.5");
    assert.equal(left(text, "other.lan"), null);
  }
  assert.equal(left(fresh, "git.lan"), null);
});
