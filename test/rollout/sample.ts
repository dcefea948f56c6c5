import type { Container } from "../../src/platform/docker/container.ts";
import type { RolloutService } from "../../src/rollout/compose/project.ts";

/** A container as tests need it: healthy and up to date, except for `differences`. */
export function sampleContainer(differences: Partial<Container> = {}): Container {
  const number = differences.number ?? 1;
  return {
    id: `id-${number}`,
    name: `shop-app-${number}`,
    service: "app",
    number,
    image: "sha256:1",
    imageName: "shop-app",
    configHash: "hash",
    status: "running",
    health: "healthy",
    healthLog: [],
    exitCode: 0,
    restartCount: 0,
    createdAtMs: 0,
    startedAtMs: 0,
    stopGraceS: 10,
    mounts: [],
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
    networks: [],
    replicas: 1,
    replacement: { how: "roll" },
    mayEnd: false,
    healthyTimeoutMs: 60_000,
    drainTimeoutMs: null,
    checkUrl: null,
    ...differences,
  };
}
