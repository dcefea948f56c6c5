import type { IncomingMessage, Server } from "node:http";
import type { BlockList } from "node:net";
import type { Log } from "#log";
import { clientAddress } from "#platform/client-address";
import {
  type Answer,
  jsonAnswer,
  problemAnswer,
  type Refusal,
  sendAnswer,
} from "#platform/http-server/answer";
import { hardenServer, serverOptions } from "#platform/http-server/hardening";
import { checkHead } from "#platform/http-server/request-head";
import { createHttpServer } from "#platform/http-server/server";
import { tooLarge } from "./body.ts";
import { createDeliveryLog } from "./delivery-log.ts";
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
  const limits = { bodyLimitBytes, arriving: { heldBytes: 0, drops: new Set<() => void>() }, log };
  // By webhook, so that its keys are made once.
  const answers = new WeakMap<Webhook, AnswerDelivery>();

  const server = createHttpServer(serverOptions, options.log, async (request, response) => {
    // To the letter: no decoding and no normalising, so no two texts for one path.
    const [path = ""] = (request.url ?? "").split("?", 1);
    // Before anything is awaited: what follows a refused head on its connection must not be read as a request.
    const webhook = findWebhook(path);
    const refusal = refuse(request, misdirection(path, request.method, webhook !== null));
    const answer = refusal ? problemAnswer(refusal) : await decide(webhook, request);
    if (answer) sendAnswer(response, answer, isStopping());
  });
  return hardenServer(
    server,
    { limitBytes: bodyLimitBytes, tooLarge: tooLarge(bodyLimitBytes) },
    log.crowded,
  );

  async function decide(webhook: Webhook | null, request: IncomingMessage): Promise<Answer | null> {
    if (webhook !== null) return await answererOf(webhook)(request, clientAddress(request, trustedProxies));
    const fault = findFault();
    return fault === null
      ? jsonAnswer(200, { status: "ok" })
      : problemAnswer({ code: "unhealthy", detail: fault });
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

/** @param webhookPath what the paths of webhooks are, for a person */
function pathUnknown(webhookPath: string): Refusal {
  const detail = `This service has two paths: POST ${webhookPath} and GET /health.`;
  return { code: "not_found", detail };
}

/** @param methods the ones that the path takes */
function methodNotAllowed(methods: readonly string[]): Refusal {
  const allow = methods.join(", ");
  const detail = `This path takes ${allow} only.`;
  return { code: "method_not_allowed", detail, headers: ["Allow", allow] };
}
