import { type Delivery, deliver, githubPush, type WebhookReply } from "./delivery.ts";
import { digestOf } from "./records.ts";

/** One push in this many repeats an earlier one, unanswered or accepted. */
const resendEvery = 8;

/** A push, and the webhook that it goes to. */
interface Sent {
  readonly path: string;
  readonly delivery: Delivery;
}

/** Clients that push without pause, and the answers that they got. */
export type Senders = ReturnType<typeof startSenders>;

/** Starts `count` clients, which wait for the address of a service. Each push goes to one of the paths. */
export function startSenders(count: number, paths: readonly string[] = ["/webhook"]) {
  const accepted = new Map<string, number>();
  const stored = new Set<string>();
  const contradictions: string[] = [];
  const answers = new Map<number, number>();
  const known: Sent[] = [];
  let sent = 0;
  let isStopped = false;
  let aimed = Promise.withResolvers<void>();
  let url: string | null = null;

  function note(delivery: Delivery, { status, json }: WebhookReply): void {
    answers.set(status, (answers.get(status) ?? 0) + 1);
    const id = json.deployment?.id;
    const digest = digestOf(delivery);
    if (status === 202 && id === undefined) stored.add(digest);
    if (id === undefined) return;
    const before = accepted.get(digest);
    if (before !== undefined && before !== id) contradictions.push(`${digest} was ${before} and is ${id}`);
    accepted.set(digest, id);
  }

  async function push(target: string, { path, delivery }: Sent): Promise<void> {
    sent += 1;
    try {
      note(delivery, await deliver(target, delivery, path));
    } catch {
      if (url === target) url = null;
    }
    known[sent % 64] = { path, delivery };
  }

  function next(): Sent {
    const again = sent % resendEvery === 0 ? known[(sent * 7) % 64] : undefined;
    return again ?? { path: paths[sent % paths.length] ?? "", delivery: githubPush() };
  }

  async function client(): Promise<void> {
    while (!isStopped) {
      if (url === null) await aimed.promise;
      else await push(url, next());
    }
  }

  const clients = Array.from({ length: count }, client);
  return {
    /** Every accepted push, by its digest, with the id in its answer. */
    accepted,
    /** The digests of those that were accepted without one: `front` has stored them. */
    stored,
    /** Answers that contradict an earlier one to the same delivery. */
    contradictions,
    answers,
    /** How many pushes were sent, and how many were answered by each status. */
    sent: () => sent,
    /** Directs the clients to a service. After a broken connection they wait for the next call. */
    aim(target: string) {
      url = target;
      aimed.resolve();
      aimed = Promise.withResolvers();
    },
    async stop() {
      isStopped = true;
      aimed.resolve();
      await Promise.all(clients);
    },
  };
}
