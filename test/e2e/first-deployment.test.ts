import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { freePort } from "../harness/listen.ts";
import { pack } from "../harness/package.ts";
import { readDeployments } from "../harness/records.ts";
import { until } from "../harness/until.ts";
import { git, makeRemote, pushVersion, readForm, readmeCommands } from "../lab/newcomer.ts";
import { onEngine } from "../lab/on-engine.ts";

const run = promisify(execFile);

/** A value that a person types: an answer to `init`, or a field of the git host's form. */
const mostValues = 3;

// The checkout's way is typed in clean-server.test.ts.
onEngine(
  "the first deployment with the npm package, by what the README says and nothing else",
  (labEnv) => {
    let place: string;
    let directory: string;
    let env: NodeJS.ProcessEnv;
    let origin: string;
    const typed: string[] = [];
    const page = async () => (await fetch(origin, { headers: { connection: "close" } })).text();
    const docker = async (...args: readonly string[]) =>
      (await run("docker", args, { cwd: directory, env })).stdout.trim();
    const serverPath = () => join(place, "etc");

    before(async () => {
      place = await mkdtemp(join(tmpdir(), "hotpush-first-"));
      directory = place;
      origin = `http://127.0.0.1:${await freePort()}`;
      const home = join(directory, "npm");
      env = {
        ...labEnv,
        PATH: `${join(home, "bin")}:${labEnv.PATH}`,
        npm_config_prefix: home,
        npm_config_update_notifier: "false",
        SERVER_PATH: serverPath(),
        HTTP_PORT: String(await freePort()),
        HTTPS_PORT: String(await freePort()),
      };
      await run(
        "npm",
        [
          "install",
          "--global",
          "--ignore-scripts",
          "--no-audit",
          "--no-fund",
          join(directory, pack(directory).filename),
        ],
        {
          env,
          cwd: directory,
        },
      );
      await makeRemote(directory, new URL(origin).port);
      directory = join(place, basename(place).toLowerCase());
      await git(place, "clone", "--quiet", "remote.git", basename(directory));
      // The project before Hotpush.
      await docker("compose", "up", "--detach", "--build", "--wait");
      await until("the app answers", () =>
        page().then(
          (text) => /version 1 /.test(text),
          () => false,
        ),
      );
    });
    after(async () => {
      await docker("compose", "down", "--volumes", "--rmi", "local", "--timeout", "1").catch(() => {});
      await docker("compose", "--project-name", "hotpush", "down", "--timeout", "1").catch(() => {});
      await docker("network", "rm", `hotpush-${basename(directory)}`).catch(() => {});
      const label = `label=com.docker.compose.project=${basename(directory)}`;
      const images = await docker("images", "--quiet", "--filter", label).catch(() => "");
      if (images) await docker("rmi", "--force", ...new Set(images.split("\n"))).catch(() => {});
      await rm(place, { recursive: true, force: true });
    });

    test("three commands and three values, then a push is live, and no request is lost", async (t) => {
      const commands = await readmeCommands();
      assert.equal(commands.length, 3, commands.join("\n"));
      const [init = "", up = "", send = ""] = commands;

      const told = await typeInto(init, [
        /Where will your git host reach this server[\s\S]*Address: /,
        origin,
      ]);
      typed.push(origin);
      assert.match(told, /Caddy serves app/);
      const form = readForm(told);
      await run("bash", ["-c", up], { cwd: directory, env });
      const { stdout } = await run("bash", ["-c", send], { cwd: directory, env });
      const head = (await git(directory, "rev-parse", "HEAD")).slice(0, 7);
      assert.match(stdout, new RegExp(`A signed test push reached the service and would deploy ${head}\\.`));
      assert.match(await page(), /version 1 /, "the same app, through the proxy");

      typed.push(form.payloadUrl, form.secret);
      assert.ok(typed.length <= mostValues, `${typed.length} values were typed`);
      const load = startLoad(origin);
      t.after(() => load.stop());
      await pushVersion(directory, 2, form);
      await until("version 2 is served", async () => /version 2 /.test(await page()), 120_000);
      const statePath = join(serverPath(), "state/run");
      const ended = () => {
        const [first] = readDeployments(statePath);
        return first && first.state !== "running" && first.state;
      };
      assert.equal(await until("the deployment has ended", ended, 120_000), "succeeded");
      const { count, failures } = await load.stop();
      assert.deepEqual(failures, [], `${failures.length} of ${count} requests failed`);
      t.diagnostic(`3 commands, ${typed.length} values, ${count} requests during the first deployment`);
    });

    test("after down and up the app is served at once, and the next push is deployed", async () => {
      await docker("compose", "down");
      await docker("compose", "up", "--detach", "--wait");
      let startedMs = performance.now();
      const answers = async () => {
        startedMs = performance.now();
        return /version 2 /.test(await page());
      };
      await until("Caddy listens", () => answers().catch(() => false));
      assert.ok(performance.now() - startedMs < 4_000, "no request waits for a container that is gone");
      const settings = join(serverPath(), `projects/${basename(directory)}.env`);
      const secret = /^WEBHOOK_SECRET=(.*)$/m.exec(await readFile(settings, "utf8"))?.[1] ?? "";
      await pushVersion(directory, 3, { payloadUrl: `${origin}/webhook`, secret });
      await until("version 3 is served", async () => /version 3 /.test(await page()), 120_000);
    });

    /** Runs a command on a terminal, and answers its question. @returns the whole screen output */
    async function typeInto(command: string, [question, answer]: readonly [RegExp, string]): Promise<string> {
      const child = spawn("script", ["--quiet", "--return", "--command", command, "/dev/null"], {
        cwd: directory,
        env,
      });
      let seen = "";
      let isAnswered = false;
      child.stdout.setEncoding("utf8").on("data", (text: string) => {
        seen += text;
        if (isAnswered || !question.test(seen)) return;
        isAnswered = true;
        child.stdin.write(`${answer}\r`);
      });
      const [code]: (number | null)[] = await once(child, "close");
      assert.equal(code, 0, seen);
      assert.ok(isAnswered, seen);
      return seen;
    }
  },
  "one server",
);

/** Sequential requests, each on a connection of its own. */
function startLoad(origin: string) {
  const failures: string[] = [];
  let count = 0;
  let isStopping = false;
  const working = (async () => {
    while (!isStopping) {
      count += 1;
      try {
        const response = await fetch(origin, { headers: { connection: "close" } });
        await response.text();
        if (!response.ok) failures.push(String(response.status));
      } catch (error) {
        failures.push(String((error as Error).cause ?? error));
      }
    }
  })();
  return {
    async stop() {
      isStopping = true;
      await working;
      return { count, failures };
    },
  };
}
