import { mkdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { delimiter, join } from "node:path";
import type { DoctorOptions, Place } from "./doctor.ts";
import { listenAt } from "./listen.ts";
import { noServer } from "./no-server.ts";
import { type Scope, writeScript } from "./temporary.ts";

/** The answers of the stand-ins for Docker's programs; without an answer, the program is missing. */
export interface DockerAnswers {
  readonly composeVersion?: string;
  readonly model?: object;
  readonly apiVersion?: string;
  /** Of `GET /containers/<id>/json`; its id, a name and a state come with each. */
  readonly container?: object;
}

/**
 * Writes a compose file, and puts a `docker` first in the PATH that prints what compose would. These tests need an old or
 * missing Docker, which a real one cannot simulate. test/e2e/doctor.test.ts uses the real one.
 */
export function standInForDocker(place: Place, { composeVersion, model }: DockerAnswers): DoctorOptions {
  const bin = join(place.root, "bin");
  mkdirSync(bin, { recursive: true });
  writeFileSync(join(place.repoPath, "compose.yaml"), "services: {}\n");
  writeFileSync(join(place.root, "model.json"), JSON.stringify(model ?? { name: "shop", services: {} }));
  const version = composeVersion === undefined ? "exit 1" : `echo ${composeVersion}`;
  const script = `#!/bin/sh\ncase "$*" in\n*"compose version"*) ${version} ;;\n*config*) cat ${place.root}/model.json ;;\n*) exit 1 ;;\nesac\n`;
  writeScript(join(bin, "docker"), script);
  return { env: { ...noServer, PATH: [bin, process.env.PATH].join(delimiter) } };
}

/** A simulated engine at the place's own socket. */
export async function startEngine(scope: Scope, place: Place, answers: DockerAnswers): Promise<string> {
  const server = createServer((request, response) => {
    const reply = answerOf(request.url ?? "", answers);
    response.writeHead(reply === null ? 404 : 200).end(JSON.stringify(reply ?? { message: "none" }));
  });
  return await listenAt(scope, server, join(place.home, "docker.sock"));
}

function answerOf(path: string, { apiVersion = "1.51", container }: DockerAnswers): object | null {
  if (path === "/version") return { Version: "28.0.0", ApiVersion: apiVersion };
  if (path.startsWith("/networks?")) return [];
  if (path === "/info") return { DockerRootDir: "/var/lib/docker-of-a-test" };
  if (path.startsWith("/containers/json")) return container === undefined ? [] : [{ Id: "0".repeat(64) }];
  if (container === undefined || !path.startsWith("/containers/")) return null;
  const [, , Id] = path.split("/");
  return { Id, Name: "/shop-hotpush-1", State: { Status: "running", ExitCode: 0 }, ...container };
}
