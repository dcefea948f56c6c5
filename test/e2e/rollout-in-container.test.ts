import assert from "node:assert/strict";
import { cp, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { openLab } from "../lab/lab.ts";
import { makeProject, type TestProject } from "../lab/project.ts";

const lab = await openLab();
const skip = lab.kind === "ready" ? false : lab.reason;
const root = join(import.meta.dirname, "../..");

const entry = "/hotpush/test/lab/hotpush.ts";

/** Only what the commands need: Node, the sources, docker and compose. */
const dockerfile = `FROM node:24-trixie-slim
COPY --from=docker:28-cli /usr/local/bin/docker /usr/local/bin/docker
COPY --from=docker:28-cli /usr/local/libexec/docker /usr/local/libexec/docker
COPY src /hotpush/src
COPY node_modules /hotpush/node_modules
COPY test/lab/hotpush.ts /hotpush/test/lab/hotpush.ts
ENTRYPOINT ["node", "${entry}"]
`;

describe("a roll-out from inside a container", { skip, concurrency: false }, () => {
  let project: TestProject;
  let image: string;

  before(async () => {
    project = await makeProject(lab.kind === "ready" ? lab.env : {});
    image = `${project.name}-hotpush`;
    const context = await mkdtemp(join(tmpdir(), "hotpush-image-"));
    await cp(join(root, "src"), join(context, "src"), { recursive: true });
    await cp(join(root, "node_modules/commander"), join(context, "node_modules/commander"), {
      recursive: true,
    });
    await cp(join(root, "test/lab/hotpush.ts"), join(context, "test/lab/hotpush.ts"));
    await writeFile(join(context, "package.json"), '{ "type": "module" }');
    await writeFile(join(context, "Dockerfile"), dockerfile);
    await project.docker("build", "--quiet", "--tag", image, context);
    await rm(context, { recursive: true });
    await project.write("first", "graceful");
    const { code, output } = await project.rollOut();
    assert.equal(code, 0, output);
  });
  after(async () => {
    await project.docker("rmi", "--force", image).catch(() => {});
    await project.remove();
  });

  /** Runs a command in a container that sees the repository at `path`. */
  function inside(path: string, more: readonly string[], ...args: readonly string[]): Promise<string> {
    const socket = (project.env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
    const mounts = [
      `${project.directory}:${path}`,
      `${socket}:/var/run/docker.sock`,
      `${project.name}_live:/run/live`,
    ];
    const env = [`REPO_PATH=${path}`, `PORT=${project.env.PORT}`, `COMPOSE_PROJECT_NAME=${project.name}`];
    const flags = [
      ...mounts.flatMap((mount) => ["--volume", mount]),
      ...env.flatMap((pair) => ["--env", pair]),
    ];
    const minFree = ["--env", "HOTPUSH_MIN_FREE=1 MiB", "--network", "host"];
    return project
      .docker("run", "--rm", ...flags, ...minFree, ...more, image, ...args)
      .catch((error: { readonly stdout: string }) => error.stdout);
  }

  for (const [what, path] of [
    ["the same path as on the host", null],
    ["another path than on the host", "/app"],
  ] as const) {
    test(`the repository at ${what}: what has bind mounts is unchanged, the app is rolled`, async () => {
      await project.write(`inside ${what}`, "graceful");
      const output = await inside(path ?? project.directory, [], "rollout");
      assert.match(output, /^app +\S+ → \S+ .* none$/m, output);
      assert.match(output, /^caddy +unchanged/m, output);
      assert.match(output, /live files in \/run\/live/);
    });
  }

  test("Hotpush's own container goes last, and the old one stays until somebody else removes it", async () => {
    await writeFile(join(project.directory, "compose.override.yaml"), ownService());
    const first = await project.rollOut({ env: { SELF_VERSION: "1" } });
    assert.equal(first.code, 0, first.output);
    const [old = ""] = await names("a-self");
    const output = await project.docker("exec", "--env", "SELF_VERSION=2", old, "node", entry, "rollout");
    assert.match(
      output,
      /a-self +note +is Hotpush itself: the old container finishes this deployment/,
      output,
    );
    assert.match(output, /Rolling out .*: app, caddy, other, single, a-self$/m);
    const both = await names("a-self");
    assert.equal(both.length, 2);
    assert.ok(both.includes(old));
    const fresh = both.find((name) => name !== old) ?? "";
    const next = await project.docker("exec", "--env", "SELF_VERSION=2", fresh, "node", entry, "rollout");
    assert.match(next, new RegExp(`a-self .*${old} stopped and removed|a-self +heal .*removed ${old}`), next);
    assert.deepEqual(await names("a-self"), [fresh]);
  });

  /** A service that stands for Hotpush in the project; its name comes first, so that the order shows. */
  function ownService(): string {
    const socket = (project.env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
    const environment = { REPO_PATH: project.directory, PORT: "$PORT", HOTPUSH_MIN_FREE: "1 MiB" };
    const service = {
      image,
      entrypoint: ["sleep", "infinity"],
      init: true,
      environment: {
        ...environment,
        COMPOSE_PROJECT_NAME: project.name,
        STATE_PATH: project.env.STATE_PATH,
        SELF: "$SELF_VERSION",
      },
      volumes: [
        `${project.directory}:${project.directory}`,
        `${socket}:/var/run/docker.sock`,
        "live:/run/live",
      ],
      network_mode: "bridge",
    };
    return JSON.stringify({ services: { "a-self": service } });
  }

  async function names(service: string): Promise<readonly string[]> {
    return (await project.containers(service)).map((line) => line.split(" ")[0] ?? "");
  }

  test("where no link can stand in for the host's path, the line to change is told", async () => {
    const output = await inside("/app", ["--read-only", "--tmpfs", "/root"], "rollout");
    assert.match(output, new RegExp(`write "${project.directory}:${project.directory}", and set REPO_PATH`));
  });

  test("a repository that is not mounted from the host is told", async () => {
    const output = await inside("/app", [], "rollout", "--directory", "/hotpush");
    assert.match(output, /\/hotpush is not mounted from the host/);
  });
});
