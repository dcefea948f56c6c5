import { readFileSync } from "node:fs";
import { containerIdIn } from "../platform/docker/mountinfo.ts";
import { readReplacementRequest } from "../rollout/own-container/replacement-request.ts";

/** Whether a roll-out has asked for this very container to be replaced: then nothing more is to be started in it. */
export function createReplacementCheck(statePath: string): () => boolean {
  const ownId = readOwnId();
  return () => ownId !== null && readReplacementRequest(statePath)?.old === ownId;
}

/** The id of the container that this process is in; null outside of one. */
export function readOwnId(): string | null {
  return containerIdIn(readFileSync("/proc/self/mountinfo", "utf8"));
}
