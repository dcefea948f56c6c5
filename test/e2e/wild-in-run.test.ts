import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { DoctorCheck } from "../harness/doctor.ts";
import { git } from "../harness/repository.ts";
import { type Scope, temporaryDirectory } from "../harness/temporary.ts";
import { onEngine } from "../lab/on-engine.ts";
import { endingIn } from "../lab/project.ts";
import { makeServer, type ServedProject, type Server, webService } from "../lab/server.ts";

/** One that is there after a reboot: `init` gives `run` no other to read. */
function lastingDirectory(scope: Scope): string {
  const path = mkdtempSync("/var/tmp/machine-");
  scope.after(() => rmSync(path, { recursive: true, force: true }));
  return path;
}

onEngine(
  "a server whose run has other files than the machine",
  (env) => {
    let server: Server;
    let shop: ServedProject;
    /** A directory of the machine, in no directory that `run` has. */
    let etc: string;
    const ends: (() => unknown)[] = [];
    const scope = { after: (end: () => unknown) => void ends.push(end) };

    before(async () => {
      etc = lastingDirectory(scope);
      writeFileSync(join(etc, "app.env"), "A=1\n");
      server = await makeServer(env);
      const api = { ...webService("8081"), env_file: [join(etc, "app.env")] };
      const unchecked = { ...webService("8082"), healthcheck: undefined };
      shop = await server.setUp("shop", { api, unchecked });
    });
    after(async () => {
      await server?.remove();
      for (const end of ends) end();
    });

    /** What the doctor finds, at the prompt of the machine. */
    const checkOf = async (id: string) => {
      const { output } = await shop.hotpush("doctor", id, "--json");
      const report: { readonly checks: readonly DoctorCheck[] } = JSON.parse(output);
      return report.checks.find((check) => check.id === id);
    };
    const examine = async (id: string) => (await checkOf(id))?.outcome;
    /** Has compose read the file for `api`, beside the project's own files. */
    const readAlso = (file: string) => {
      writeFileSync(file, "B=1\n");
      const override = join(shop.checkout, "compose.override.yaml");
      writeFileSync(override, JSON.stringify({ services: { api: { env_file: [file] } } }));
      const list = ["compose.yaml", "compose.override.yaml", "compose.hotpush.yaml"];
      const paths = list.map((name) => join(shop.checkout, name));
      writeFileSync(join(shop.checkout, ".env"), `COMPOSE_FILE=${paths.join(":")}\n`);
    };
    const init = () => shop.hotpush("init", "--yes");

    test("init gives run the directory of an environment file, and a push is deployed", async () => {
      const endedAs = endingIn(server.state.run);
      assert.equal(await endedAs(await shop.push("second")), "succeeded");
      assert.equal(await shop.version(), "second");
      assert.equal(await examine("compose"), "ok");
    });

    test("services: the health check that is advised passes in the container, whose image has no curl", async () => {
      const change = (await checkOf("services"))?.faults.find(({ change }) =>
        change?.includes("unchecked"),
      )?.change;
      const [, test = "[]"] =
        /^services\.unchecked\.healthcheck: \{test: (\[.*?\]), interval/.exec(change ?? "") ?? [];
      const [, program = "", ...args]: readonly string[] = JSON.parse(test);
      assert.equal(program, "node", change ?? "no advice");
      await shop.compose("exec", "--no-tty", "unchecked", program, ...args);
    });

    test("compose: a file that run does not have is found from the machine, and init gives it to run", async () => {
      const more = lastingDirectory(scope);
      readAlso(join(more, "more.env"));
      assert.equal(await examine("compose"), "faulty");
      const { code, output } = await init();
      assert.equal(code, 0, output);
      assert.equal(await examine("compose"), "ok");
    });

    test("init ends with the file that it cannot give to run, and its deployment names the container", async (t) => {
      const file = `${temporaryDirectory(scope)}.env`;
      t.after(() => rmSync(file));
      readAlso(file);
      const { code, output } = await init();
      assert.equal(code, 1, output);
      assert.match(output, /In the container of `run`/);
      assert.ok(output.includes(file), output);
      assert.equal(await endingIn(server.state.run)(await shop.push("third")), "failed");
      assert.match((await shop.hotpush("logs")).output, /Hotpush runs in a container/);
    });

    test("remote: one that only the machine reaches is found from the machine, and init says why it ends", async () => {
      rmSync(join(shop.checkout, "compose.override.yaml"));
      const before = git(shop.checkout, "remote", "get-url", "origin").trim();
      const aside = join(temporaryDirectory(scope), "aside.git");
      git("/", "clone", "--quiet", "--bare", before, aside);
      git(shop.checkout, "config", `url.${aside}.insteadOf`, before);
      assert.equal(await examine("remote"), "faulty");
      git(shop.checkout, "remote", "set-url", "origin", "http://127.0.0.1:1/octo/shop.git");
      const refused = await init();
      assert.equal(refused.code, 1);
      assert.match(refused.output, /The remote origin is at 127\.0\.0\.1\./);
      git(shop.checkout, "remote", "set-url", "origin", before);
      const { code, output } = await init();
      assert.equal(code, 0, output);
      assert.equal(await examine("remote"), "ok");
    });
  },
  "one server",
);
