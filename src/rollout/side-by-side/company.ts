import { readFile } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { scaleUpCommand } from "../../platform/compose/commands.ts";
import { runCompose } from "../../platform/compose/run-compose.ts";
import type { Rollout, ServiceRollout } from "../context.ts";
import { createMachineRoom, type MachineRoom } from "./machine-room.ts";
import { type StartContainers, startInSharedRuns } from "./start-containers.ts";

/** What services share that are brought up to date at the same time. */
export interface Company {
  readonly room: MachineRoom;
  readonly startContainers: StartContainers;
  /** Aborted when one of them fails: the others go back. */
  readonly failed: AbortSignal;
}

/** What the steps of a service work with that has company. */
export interface AccompaniedRollout extends ServiceRollout {
  readonly company: Company;
}

const startTimeoutMs = 120_000;
/** More would wait for each other on the processor while they start, and slow down what serves. */
const worksPerCore = 4;
/** The other half of what is free is for the build cache of the kernel, and for what the versions that serve may yet need. */
const shareOfMemory = 0.5;

/**
 * Makes what the services of a roll-out share, with room for what this machine can do now.
 *
 * @param failed aborted by the caller when one of them fails
 */
export async function createCompany(rollout: Rollout, failed: AbortSignal): Promise<Company> {
  const { target, signal } = rollout;
  const limits = {
    works: worksPerCore * availableParallelism(),
    bytes: shareOfMemory * (await availableBytes()),
  };
  const options = { ...rollout, signal: AbortSignal.any([signal, failed]) };
  return {
    room: createMachineRoom(limits),
    startContainers: startInSharedRuns((scales) =>
      runCompose(options, scaleUpCommand(target, scales), { timeoutMs: startTimeoutMs }),
    ),
    failed,
  };
}

/** Memory that new containers can have before anything is swapped out; all of it on a system that does not say. */
async function availableBytes(): Promise<number> {
  const text = await readFile("/proc/meminfo", "utf8").catch(() => "");
  const [, kib] = /^MemAvailable:\s+(\d+) kB$/m.exec(text) ?? [];
  return kib === undefined ? Number.POSITIVE_INFINITY : Number(kib) * 1_024;
}
