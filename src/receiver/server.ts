import { once } from "node:events";
import type { IncomingMessage, Server } from "node:http";
import type { BlockList } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import type { Log } from "../log.ts";
import { createServer } from "../platform/http.ts";
import { ProblemError } from "../problems.ts";
import { type Answer, isClosing, jsonAnswer, problemAnswer, type Refusal, sendAnswer } from "./answer.ts";
import { createBodyBudget } from "./body-budget.ts";
import { createDeliveryLog } from "./delivery-log.ts";
import { hardenServer, serverOptions } from "./hardening.ts";
import { internalError, methodNotAllowed, pathUnknown } from "./refusals.ts";
import { checkHead, clientAddress } from "./request-head.ts";
import { type AnswerDelivery, createWebhook, type Webhook } from "./webhook.ts";

export interface ReceiverOptions {
  /** The webhook at a path, or null. */
  readonly findWebhook: (path: string) => Webhook | null;
  /** What the paths of webhooks are, for a person. */
  readonly webhookPath: "/webhook" | "/webhook/<project>";
  readonly bodyLimitBytes: number;
  readonly trustedProxies: BlockList;
  /** What is wrong with the service, or null. /health answers it to strangers. */
  readonly findFault: () => string | null;
  readonly isStopping: () => boolean;
  readonly log: Log;
}

/** Makes the HTTP server: webhooks, /health and nothing else. It does not listen yet. */
export function createReceiver(options: ReceiverOptions): Server {
  const { bodyLimitBytes, trustedProxies, findWebhook, webhookPath, findFault, isStopping } = options;
  const log = createDeliveryLog(options.log);
  const limits = { bodyLimitBytes, budget: createBodyBudget(), log };
  // By webhook, so that its keys are made once.
  const answers = new WeakMap<Webhook, AnswerDelivery>();

  const server = createServer(serverOptions, async (request, response) => {
    if (isClosing(request.socket)) return;
    // To the letter: no decoding and no normalising, so no two texts for one path.
    const [path = ""] = (request.url ?? "").split("?", 1);
    // Before anything is awaited: what follows a refused head on its connection must not be read as a request.
    const webhook = findWebhook(path);
    const refusal = refuse(request, misdirection(path, request.method, webhook !== null));
    const answer = refusal ? problemAnswer(refusal) : await decide(webhook, request);
    if (answer) sendAnswer(response, answer, isStopping());
  });
  return hardenServer(server, bodyLimitBytes, log.crowded);

  async function decide(webhook: Webhook | null, request: IncomingMessage): Promise<Answer | null> {
    const from = clientAddress(request, trustedProxies);
    try {
      if (webhook !== null) return await answererOf(webhook)(request, from);
      const fault = findFault();
      if (fault !== null) return problemAnswer({ code: "unhealthy", detail: fault });
      return jsonAnswer(200, { status: "ok" });
    } catch (error) {
      log.failed(error, from);
      return problemAnswer(internalError);
    }
  }

  function misdirection(path: string, method = "", isWebhook: boolean): Refusal | null {
    const allowed = isWebhook ? ["POST"] : path === "/health" ? ["GET", "HEAD"] : null;
    if (!allowed) return pathUnknown(webhookPath);
    return allowed.includes(method) ? null : methodNotAllowed(allowed);
  }

  function answererOf(webhook: Webhook): AnswerDelivery {
    const known = answers.get(webhook);
    if (known) return known;
    const answer = createWebhook(webhook, limits);
    answers.set(webhook, answer);
    return answer;
  }
}

/** What is wrong with a request whatever its body, or null. A head that is not well formed closes the connection. */
function refuse(request: IncomingMessage, misdirected: Refusal | null): Refusal | null {
  const fault = checkHead(request);
  return misdirected && fault ? { ...misdirected, closing: "refused" } : (fault ?? misdirected);
}

/**
 * Starts to listen.
 *
 * @throws ProblemError `address_unavailable` if the address cannot be used, with what to set instead
 */
export async function listen(
  receiver: Server,
  { host, port }: { readonly host: string; readonly port: number },
): Promise<void> {
  try {
    receiver.listen({ host, port });
    await once(receiver, "listening");
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new ProblemError({ code: "address_unavailable", detail: addressDetail(code, host, port) }, error);
  }
}

function addressDetail(code: string | undefined, host: string, port: number): string {
  if (code === "EADDRINUSE")
    return `Port ${port} is taken by another program. Set WEBHOOK_PORT to a free one.`;
  if (code === "EACCES")
    return `Port ${port} may not be taken by this user. Set WEBHOOK_PORT to one above 1023.`;
  return `The service cannot listen on ${host}:${port} (${code ?? "unknown error"}). Set WEBHOOK_HOST to an address of this machine.`;
}

/** A turn of the event loop that takes longer had something to do: others may have connected meanwhile. */
const quietTurnMs = 0.5;
const longestWaitMs = 500;

/**
 * Stops listening and gives open requests `lastAnswersMs` to be answered.
 *
 * When a listening socket is closed, the kernel resets the connections that it has taken and that nobody has accepted
 * yet, and git hosts do not retry. So it is closed at the end of a turn of the event loop that did little but accept.
 */
export async function closeReceiver(receiver: Server, lastAnswersMs: number): Promise<void> {
  await quietTurn();
  const closed = new Promise((resolve) => receiver.close(resolve));
  await Promise.race([closed, pause(lastAnswersMs, null, { ref: false })]);
  receiver.closeAllConnections();
  await closed;
}

async function quietTurn(): Promise<void> {
  const startMs = performance.now();
  for (let turnMs = startMs; ; turnMs = performance.now()) {
    await new Promise(setImmediate);
    const nowMs = performance.now();
    const isWholeTurn = turnMs !== startMs;
    if ((isWholeTurn && nowMs - turnMs < quietTurnMs) || nowMs - startMs > longestWaitMs) return;
  }
}
