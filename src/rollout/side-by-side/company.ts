import { availableParallelism } from "node:os";
import { scaleUpCommand } from "../../platform/compose/commands.ts";
import { runCompose } from "../../platform/compose/run-compose.ts";
import { readFreeMemory } from "../../platform/free-memory.ts";
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
    bytes: shareOfMemory * (await readFreeMemory()).availableBytes,
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
