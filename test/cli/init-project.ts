import { lstatSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type CliOptions, type CommandResult, runCli } from "../harness/hotpush.ts";
import { makeRepository, type TestRepository } from "../harness/repository.ts";
import { temporaryDirectory, writeScript } from "../harness/temporary.ts";

/** The compose file of the project. */
export const project = "services:\n  web:\n    build: web\n    ports: ['48182:3000']\n";
/** The compose file as compose reads it. */
export const model = {
  services: {
    web: {
      build: { context: "/elsewhere" },
      networks: { default: null },
      ports: [{ mode: "ingress", target: 3000, published: "48182", protocol: "tcp" }],
    },
  },
};

/** Nothing listens there. */
const ports = { HTTP_PORT: "48180", HTTPS_PORT: "48181" };

/** A project for `hotpush init`, on a server that has none yet. */
export interface InitProject {
  readonly repository: TestRepository;
  /** Runs `hotpush init` in the repository, unless `more` says otherwise. */
  readonly init: (args?: readonly string[], more?: Partial<CliOptions>) => Promise<CommandResult>;
  /** The text of one of its files. */
  readonly read: (file: string) => string;
  readonly env: Readonly<Record<"PATH" | "DOCKER_HOST" | "SERVER_PATH" | "HTTP_PORT" | "HTTPS_PORT", string>>;
}

/** A repository with a remote at GitHub and, unless it is null, a compose file that compose reads as `services`. */
export function makeProject(t: TestContext, services: object | null = model, name = "shop"): InitProject {
  const repository = makeRepository(t, name);
  repository.git("remote", "add", "origin", "git@github.com:octo/shop.git");
  if (services !== null) repository.write("compose.yaml", project);
  repository.commit();
  const bin = makeDocker(t, services);
  // No host is contacted: the remote's HEAD is as after git clone.
  repository.git("symbolic-ref", "refs/remotes/origin/HEAD", "refs/remotes/origin/main");
  const env = {
    GIT_SSH_COMMAND: "false",
    PATH: `${bin}:${process.env.PATH}`,
    DOCKER_HOST: `unix://${join(bin, "docker.sock")}`,
    SERVER_PATH: join(bin, "hotpush"),
    ...ports,
  };
  const init = (args: readonly string[] = [], more: Partial<CliOptions> = {}) =>
    runCli(["init", ...args], { cwd: repository.directory, env, ...more });
  const read = (file: string) => readFileSync(join(repository.directory, file), "utf8");
  return { repository, init, read, env };
}

/**
 * A stand-in for Docker's command line: it gives the project as compose does, and has no container and no image. The real one is in
 * test/e2e/server.test.ts.
 */
function makeDocker(t: TestContext, services: object | null): string {
  const bin = temporaryDirectory(t);
  writeFileSync(join(bin, "model.json"), JSON.stringify(services));
  const cases = [
    '"compose version"*) echo 2.40.3 ;;',
    `"compose --progress"*) cat ${join(bin, "model.json")} ;;`,
    '"ps "*) ;;',
    '"image inspect"*) exit 1 ;;',
    '*) echo "unexpected: $*" >&2; exit 9 ;;',
  ];
  writeScript(join(bin, "docker"), `#!/bin/sh\ncase "$*" in\n${cases.join("\n")}\nesac\n`);
  return bin;
}

/** Every file of a repository except git's own, with its mode and content. */
export function snapshot({ directory }: TestRepository): Record<string, string> {
  const files = readdirSync(directory, { recursive: true, withFileTypes: true }).filter(
    (entry) => !entry.isDirectory(),
  );
  const paths = files
    .map(({ parentPath, name }) => join(parentPath, name))
    .filter((path) => !path.includes("/.git/"));
  return Object.fromEntries(
    paths.map((path) => [path, `${lstatSync(path).mode.toString(8)} ${readFileSync(path, "utf8")}`]),
  );
}
