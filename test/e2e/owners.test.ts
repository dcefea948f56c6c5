import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { until } from "../harness/until.ts";
import { onEngine } from "../lab/on-engine.ts";
import { type Checkout, type OwnedProjects, startOwnedProjects } from "../lab/owned-projects.ts";

const alice = { name: "alice", uid: 61_001 };
const bob = { name: "bob", uid: 61_002 };

onEngine("Hotpush in containers deploys the projects of two users", (env) => {
  let machine: OwnedProjects;
  const checkouts = new Map<string, Checkout>();

  before(async () => {
    machine = await startOwnedProjects(env, [alice, bob]);
    for (const user of [alice, bob]) {
      const files = { ...filesOf(machine.composeName(user.name), machine.image), version: "1\n" };
      checkouts.set(user.name, await machine.add({ ...user, files }));
    }
    await until("both are served", async () => {
      const { projects } = JSON.parse(await machine.inRun("hotpush", "projects", "--json"));
      return projects.length === 2;
    });
  });
  after(() => machine?.remove());

  test("each push is built, rolled out and recorded as the owner of the checkout", async () => {
    for (const [index, user] of [alice, bob].entries()) {
      const checkout = checkoutOf(user.name);
      await checkout.push({ version: "2\n" });
      assert.equal(
        await machine.ending(index + 1),
        "succeeded",
        await machine.docker("compose", "logs", "run"),
      );
      assert.equal(
        readFileSync(join(checkout.path, "said"), "utf8"),
        `${user.name} ${user.uid} ${checkout.home}\n`,
      );
      assert.deepEqual(foreignFiles(checkout.path, user.uid), []);
      const state = join(machine.serverStatePath, "projects", user.name);
      assert.equal(statSync(state).mode & 0o777, 0o700);
      assert.deepEqual(foreignFiles(state, user.uid), []);
      assert.equal(readdirSync(join(state, "rollout")).length, 2, "a lock and the good versions");
    }
  });

  test("a roll back finds the good versions of the owner", async () => {
    const checkout = checkoutOf("alice");
    await checkout.push({ version: "3\n" });
    assert.equal(await machine.ending(3), "succeeded");
    const said = await machine.inRun("hotpush", "rollback", "--project", "alice");
    assert.match(said, /^Deployment 4 goes back to [0-9a-f]{40}\./);
    assert.equal(await machine.ending(4), "succeeded");
    const container = await machine.docker(
      "ps",
      "--quiet",
      `--filter=label=com.docker.compose.project=${machine.composeName("alice")}`,
    );
    assert.equal(await machine.docker("exec", container, "cat", "/version"), "2");
  });

  test("a script of an owner is cancelled with all its processes", async () => {
    await checkoutOf("bob").push({ "deploy.sh": "#!/bin/sh\nsleep 600 &\nsleep 600\n" });
    // This one still ran the script before, which pulled the other one.
    assert.equal(await machine.ending(5), "succeeded");
    await checkoutOf("bob").push({ version: "3\n" });
    await until("the script and its children run", async () => (await processesOf(bob.uid)).length === 3);
    const [first = ""] = await processesOf(bob.uid);
    assert.match(
      await machine.inRun("cat", join(first, "environ")),
      /\0DEPLOY_ID=6\0/,
      "it is found by this",
    );
    await machine.inRun("hotpush", "cancel", "--project", "bob");
    assert.equal(await machine.ending(6), "cancelled");
    assert.deepEqual(await processesOf(bob.uid), []);
  });

  async function processesOf(uid: number): Promise<readonly string[]> {
    const found = await machine.inRun("find", "/proc", "-maxdepth", "1", "-uid", String(uid));
    return found.split("\n").filter(Boolean);
  }

  function checkoutOf(name: string): Checkout {
    const checkout = checkouts.get(name);
    assert.ok(checkout);
    return checkout;
  }
});

function filesOf(name: string, image: string): Record<string, string> {
  const script = [
    "#!/bin/sh -e",
    "git pull --quiet",
    'echo "$(id -un) $(id -u) $HOME" >said',
    'echo own >"$DEPLOY_LOG"',
    "hotpush rollout",
  ];
  const service = {
    build: {
      context: ".",
      dockerfile_inline: `FROM ${image}\nENTRYPOINT []\nCMD ["sleep", "infinity"]\nHEALTHCHECK NONE\nCOPY version /\n`,
    },
    init: true,
  };
  return {
    "deploy.sh": `${script.join("\n")}\n`,
    "compose.yaml": JSON.stringify({ name, services: { app: service } }),
    ".gitignore": "said\n",
  };
}

/** The files below `directory` that do not belong to `uid`. */
function foreignFiles(directory: string, uid: number): readonly string[] {
  return execFileSync("find", [directory, "!", "-user", String(uid)], { encoding: "utf8" })
    .split("\n")
    .filter(Boolean);
}
