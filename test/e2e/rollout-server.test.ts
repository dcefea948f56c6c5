import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { statOf } from "../../src/platform/files.ts";
import { needs, nobody } from "../harness/requirements.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endOf, outputOf, untilPrinted } from "../lab/project.ts";
import {
  type Machine,
  makeMachine,
  makeServerProject,
  type Owner,
  type ServerProject,
} from "../lab/server-project.ts";

/** How many versions are rolled out under load; rollout-many.test.ts rolls out more. */
const rollouts = 3;

function declare(env: NodeJS.ProcessEnv): void {
  let machine: Machine;
  let shop: ServerProject;
  let blog: ServerProject;

  before(async () => {
    machine = await makeMachine(env, 2);
    shop = await makeServerProject(machine, "shop", ownerOnEngine(env));
    blog = await makeServerProject(machine, "blog");
  });
  after(async () => {
    for (const project of [shop, blog]) await project?.remove();
    await machine?.remove();
  });

  test("a project that a person has started is served by its name, and then rolled out", async () => {
    await shop.write("by-hand", "graceful");
    await shop.docker("compose", "up", "--detach", "--wait", "--build");
    assert.equal(await shop.version(), "by-hand");
    const { versions } = await shop.underLoad(async () => {
      await outputOf(shop.deploy("first", "graceful"));
    });
    assert.deepEqual(versions, ["by-hand", "first"]);
    assert.deepEqual([await machine.live("shop", "web")], await shop.containers());
  });

  test("a project that nobody has started is started by its first deployment", async () => {
    await outputOf(blog.deploy("first", "graceful"));
    assert.equal(await blog.version(), "first");
    assert.deepEqual([await machine.live("blog", "web")], await blog.containers());
  });

  test(`${rollouts} roll-outs under load fail no request of either project`, async () => {
    const { versions } = await blog.underLoad(async () => {
      await shop.underLoad(async () => {
        for (let round = 1; round <= rollouts; round += 1) {
          const output = await outputOf(shop.deploy(`round-${round}`, "dies-on-sigterm"));
          assert.match(output, /^127\.0\.0\.1: [\d,]+ requests, 0 failed; the app answered none with 5xx$/m);
        }
      });
    });
    assert.deepEqual(versions, ["first"]);
    assert.equal(await shop.version(), `round-${rollouts}`);
  });

  test("a roll back by hand goes to the version before, which a script recorded", async () => {
    await shop.underLoad(async () => {
      await outputOf(endOf(shop.byHand(["rollout", "--back"])));
    });
    assert.equal(await shop.version(), `round-${rollouts - 1}`);
  });

  test("after down and up by a person, the site answers though its live file names a container that is gone", async () => {
    await shop.docker("compose", "down");
    await shop.docker("compose", "up", "--detach", "--wait");
    assert.notDeepEqual([await machine.live("shop", "web")], await shop.containers());
    assert.equal(await shop.version(), `round-${rollouts - 1}`);
    const { versions } = await shop.underLoad(async () => {
      await outputOf(shop.deploy("after-down", "graceful"));
    });
    assert.deepEqual(versions, [`round-${rollouts - 1}`, "after-down"]);
  });

  test("a roll-out by hand waits for that of the script", async () => {
    await shop.write("slow", "slow-start");
    const { code, output } = await untilPrinted(shop.script("rollout"), /web +start /, async () => {
      const byHand = await endOf(shop.byHand(["rollout", "--lock-wait", "0"]));
      assert.equal(byHand.code, 1, byHand.output);
      assert.match(byHand.output, /Another roll-out of this project/);
    });
    assert.equal(code, 0, output);
  });

  test("a user of Docker who is not the owner of the checkout is refused before anything", async (t) => {
    const owner = ownerOnEngine(env);
    if (owner === null) return t.skip("there is no other user");
    const before = await shop.containers();
    const other = { ...owner, uid: owner.uid - 1 };
    const output = await outputOf(endOf(shop.byHand(["rollout"], other)), 1);
    assert.match(
      output,
      /FAILED: The lock of the roll-outs of shop .* as the owner of the checkout or as root/,
    );
    const given = await endOf(shop.byHand(["rollout", "--lock-wait", "0"], { ...other, uid: owner.uid }));
    assert.equal(given.code, 0, given.output);
    assert.deepEqual(await shop.containers(), before);
  });
}

/** Nobody, who may use the engine; null if this machine cannot have such an owner. */
function ownerOnEngine({ DOCKER_HOST = "" }: NodeJS.ProcessEnv): Owner | null {
  const socket = statOf(DOCKER_HOST.replace("unix://", "") || "/var/run/docker.sock");
  const canBe = needs("root", "otherUser").skip === false && socket !== null;
  return canBe ? { uid: nobody, gid: socket.gid } : null;
}

onEngine("roll-outs of projects on the server", declare, "one server");
