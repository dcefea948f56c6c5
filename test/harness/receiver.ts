import { once } from "node:events";
import { type AddressInfo, BlockList } from "node:net";
import { pino } from "pino";
import type { MissedDelivery } from "../../src/calls/shapes.ts";
import { makeSecret } from "../../src/config/secret.ts";
import type { Push } from "../../src/deployments/push.ts";
import { createReceiver } from "../../src/front/webhook/webhook.ts";
import { testSecret } from "./delivery.ts";
import type { Scope } from "./temporary.ts";

/**
 * The first stage alone, in this process but over real sockets. Its pushes are collected instead of recorded.
 *
 * @param level of the lines of the log that are kept
 * @param isKnown whether each push was recorded before
 */
export async function startReceiver(scope: Scope, { level = "error", isKnown = false } = {}) {
  const pushes: Push[] = [];
  const faults: string[] = [];
  const missed: Omit<MissedDelivery, "at">[] = [];
  const used: (string | null)[] = [];
  const log = pino({ level }, { write: (line: string) => faults.push(line) });
  const secrets = { current: makeSecret(testSecret), previous: null };
  const receiver = createReceiver({
    findProject: () => ({ name: "default", settings: { secrets, repository: null, branch: null } }),
    isOnly: true,
    spool: {
      async add(_, push) {
        pushes.push(push);
        const { ref, commit } = push;
        const deployment = { id: pushes.length, ref, commit, state: "queued" } as const;
        return isKnown
          ? { kind: "duplicate", deployment, detail: "recorded before" }
          : { kind: "accepted", deployment };
      },
      dryRun: async (_, { ref, commit }) => ({ deploy: { ref, commit, when: "now" } }),
      noteSecretUse: (_project, _slot, _host, deliveryId) => void used.push(deliveryId),
      noteMissed: (one) => void missed.push(one),
    },
    bodyLimitBytes: 25 * 1024 ** 2,
    trustedProxies: new BlockList(),
    findFault: () => null,
    stopping: new AbortController().signal,
    log,
  });
  await once(receiver.listen({ host: "127.0.0.1", port: 0 }), "listening");
  scope.after(() => receiver.close());
  return { port: (receiver.address() as AddressInfo).port, pushes, faults, missed, used };
}
