import { type Delivery, deliver, githubPush, type WebhookReply } from "./delivery.ts";
import { digestOf } from "./records.ts";

/** Clients that push without pause, and the answers that they got. */
export interface Load {
  /** Every accepted push, by its digest, with the id in its answer. */
  readonly accepted: ReadonlyMap<string, number>;
  /** The digests of those that were accepted without one: `front` has stored them. */
  readonly stored: ReadonlySet<string>;
  /** Answers that contradict an earlier one to the same delivery. */
  readonly contradictions: readonly string[];
  /** How many pushes were sent, and how many were answered by each status. */
  readonly sent: () => number;
  readonly answers: ReadonlyMap<number, number>;
  /** Directs the clients to a service. After a broken connection they wait for the next call. */
  readonly aim: (url: string) => void;
  readonly stop: () => Promise<void>;
}

/** One push in this many repeats an earlier one, unanswered or accepted. */
const resendEvery = 8;

export interface LoadOptions {
  /** Each push goes to one of them. */
  readonly paths?: readonly string[];
  readonly makePush?: () => Delivery;
}

/** A push, and the webhook that it goes to. */
interface Sent {
  readonly path: string;
  readonly delivery: Delivery;
}

/** Starts `count` clients, which wait for the address of a service. */
export function startLoad(
  count: number,
  { paths = ["/webhook"], makePush = githubPush }: LoadOptions = {},
): Load {
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
    return again ?? { path: paths[sent % paths.length] ?? "", delivery: makePush() };
  }

  async function client(): Promise<void> {
    while (!isStopped) {
      if (url === null) await aimed.promise;
      else await push(url, next());
    }
  }

  const clients = Array.from({ length: count }, client);
  return {
    accepted,
    stored,
    contradictions,
    answers,
    sent: () => sent,
    aim(target) {
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
