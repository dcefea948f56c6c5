import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { git } from "../harness/repository.ts";
import { commitAndPush } from "../lab/git-remote.ts";
import { onEngine } from "../lab/on-engine.ts";
import { dockerIn, endingIn, endOf, outputOf, spawnHotpush } from "../lab/project.ts";
import { makeRepository, makeServer, type ServedProject, type Server, webService } from "../lab/server.ts";

onEngine(
  "checkouts of a server",
  (labEnv) => {
    let server: Server;
    let shop: ServedProject;

    before(async () => {
      server = await makeServer(labEnv);
      shop = await server.setUp("shop");
    });
    after(() => server?.remove());

    const containersOf = (project: string) =>
      server.docker("ps", "--quiet", "--filter", `label=com.docker.compose.project=${project}`);

    test("a checkout whose directory has another one's name gets a compose project of its own", async () => {
      const directory = join(shop.checkout, "../../other");
      const checkout = join(directory, "shop");
      await makeRepository(join(directory, "git"), checkout, {
        name: "blog",
        services: { web: webService("8080") },
      });
      const before = await containersOf("shop");
      const compose = dockerIn(checkout, shop.env);
      const hotpush = (...args: readonly string[]) => outputOf(endOf(spawnHotpush(checkout, shop.env, args)));
      const url = `http://127.0.0.99:${shop.env.HTTP_PORT}`;
      await hotpush("init", "--yes", "--url", url, "--at", "web=127.0.0.99");
      assert.equal(readFileSync(join(checkout, ".env"), "utf8"), "COMPOSE_PROJECT_NAME=other-shop\n");
      await hotpush("deploy");
      assert.equal(await containersOf("shop"), before);
      assert.notEqual(await containersOf("other-shop"), "");
      // As after a `docker compose up` of before, under the name of both.
      await compose("compose", "down", "--volumes");
      writeFileSync(join(checkout, ".env"), "");
      for (const command of ["rollout", "prune"]) {
        const { code, output } = await endOf(spawnHotpush(checkout, shop.env, [command]));
        assert.deepEqual([code > 0, output.includes(shop.checkout)], [true, true], output);
      }
      assert.equal(await containersOf("shop"), before);
      await outputOf(endOf(spawnHotpush("/", shop.env, ["remove", "--yes", "--project", "other-shop"])));
    });

    test("a push of an override ends before any change, and init finds another place; a tracked .env stays", async () => {
      const end = endingIn(server.state.run);
      const clone = join(shop.checkout, "../../git/shop");
      writeFileSync(join(clone, ".env"), "A=1\n");
      commitAndPush(clone);
      assert.equal(await end(await shop.push("two")), "succeeded");
      await shop.untilServed();
      assert.equal(git(shop.checkout, "status", "--porcelain", "--untracked-files=no"), "");
      assert.equal(readFileSync(join(shop.checkout, ".env"), "utf8"), "A=1\n");
      const before = await containersOf("shop");
      git(clone, "rm", "--quiet", ".env");
      writeFileSync(
        join(clone, "compose.override.yaml"),
        '{"services": {"web": {"environment": {"B": "2"}}}}',
      );
      assert.equal(await end(await shop.push("three")), "failed");
      assert.equal(await containersOf("shop"), before);
      assert.equal(await shop.version(), "two");
      assert.equal((await shop.hotpush("init", "--yes", "--url", shop.origin)).code, 0);
      assert.match(
        readFileSync(join(shop.checkout, ".env"), "utf8"),
        /compose\.override\.yaml:.*hotpush\.yaml/,
      );
      assert.equal(await end(await shop.push("four")), "succeeded");
      assert.equal(await shop.version(), "four");
    });
  },
  "alone",
);
