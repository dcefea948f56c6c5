import { mkdirSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import type { TestContext } from "node:test";
import type { Container } from "../../src/platform/docker/containers.ts";
import type { Engine } from "../../src/platform/docker/engine.ts";
import type { LiveDirectory, Rollout, RolloutRequest } from "../../src/rollout/context.ts";
import type { RolloutService } from "../../src/rollout/project.ts";
import { listenAt } from "../harness/listen.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

/** A container as tests need it: healthy and up to date, except for `differences`. */
export function sampleContainer(differences: Partial<Container> = {}): Container {
  const number = differences.number ?? 1;
  return {
    id: `id-${number}`,
    name: `shop-app-${number}`,
    labels: {},
    service: "app",
    number,
    image: "sha256:1",
    imageName: "shop-app",
    configHash: "hash",
    status: "running",
    health: "healthy",
    healthCommand: null,
    unhealthyAfterMs: 0,
    healthLog: [],
    exitCode: 0,
    restartCount: 0,
    stopGraceS: 10,
    mounts: [],
    addresses: new Map(),
    environment: [],
    ...differences,
  };
}

/** The service of those containers, but for `differences`. */
export function sampleService(differences: Partial<RolloutService> = {}): RolloutService {
  return {
    name: "app",
    image: "shop-app",
    isBuilt: true,
    hasBuild: true,
    hasManyPlatforms: false,
    hookImages: [],
    isAlwaysPulled: false,
    networks: [],
    dependsOn: [],
    awaitsHealthy: [],
    replicas: 1,
    mode: { how: "roll" },
    mayEnd: false,
    healthyTimeoutMs: 60_000,
    isLimitGiven: false,
    drainTimeoutMs: null,
    checkUrl: null,
    guardMs: 0,
    hooks: { post_start: [], pre_stop: [] },
    providers: [],
    ...differences,
  };
}

/** A request to roll out the project in `directory`, with its state there, but for `differences`. */
export function sampleRequest(directory: string, differences: Partial<RolloutRequest> = {}): RolloutRequest {
  return {
    engine: engineWith(async () => ""),
    target: { projectDirectory: directory, files: [] },
    env: {},
    names: [],
    commit: undefined,
    lockPath: join(directory, "rollout.lock"),
    versionsPath: join(directory, "versions.json"),
    statePath: directory,
    lockWaitS: 0,
    withBuild: true,
    withPull: false,
    withPrune: false,
    back: null,
    report: () => {},
    signal: new AbortController().signal,
    ...differences,
  };
}

/** A roll-out of the project shop in `directory` by compose. */
export function sampleRollout(directory: string): Rollout {
  return {
    ...sampleRequest(directory),
    project: { name: "shop", services: [] },
    own: null,
    containers: [],
    commit: "1".repeat(40),
    version: null,
    current: null,
    lockDescriptor: 0,
    services: [],
    model: { name: "shop", services: {} },
    contents: Promise.resolve({}),
    liveDirectory: null,
    liveFilesRead: null,
    requestCount: null,
  };
}

/** An engine that answers each GET with what `answer` gives for its path, as JSON, and all else with nothing. */
export function engineWith(answer: (path: string) => unknown): Engine {
  const nothing = async () => Buffer.alloc(0);
  const get = async (path: string) => Buffer.from(JSON.stringify(answer(path)));
  return { get, post: nothing, delete: nothing };
}

/** An engine in which every name stands for another image than those that ran. */
export function watchedEngine() {
  const posted: string[] = [];
  const post = async (path: string) => {
    posted.push(decodeURIComponent(path));
    return Buffer.alloc(0);
  };
  return { engine: { ...engineWith(() => ({ Id: "x", RepoTags: [] })), post }, posted };
}

/** A directory of live files: of a project with a Caddy of its own, or of `project` on the server. */
export function liveDirectory(t: TestContext, project: string | null = null): LiveDirectory {
  const root = temporaryDirectory(t);
  const path = join(root, project ?? ".");
  mkdirSync(path, { recursive: true });
  return { path, adminSocket: join(root, "admin.sock"), project };
}

/** Something that answers as Caddy's admin API does. */
export async function fakeCaddy(t: TestContext, { adminSocket }: LiveDirectory, answer: () => unknown) {
  const server = createServer((_, response) => response.end(JSON.stringify(answer())));
  await listenAt(t, server, adminSocket);
}
