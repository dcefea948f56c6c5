import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { createServer } from "../platform/http-server.ts";
import { type Answer, answerAndClose, isClosing, jsonAnswer, problemAnswer, sendAnswer } from "./answer.ts";
import type { DeliveryLog } from "./delivery-log.ts";
import { hardenServer, serverOptions } from "./hardening.ts";
import { checkHead } from "./request-head.ts";
import type { Outcome } from "./webhook.ts";

export interface ReceiverOptions {
  readonly webhook: (request: IncomingMessage) => Promise<Outcome>;
  /** What is wrong with the service, or null: a word for /health, nothing that tells a stranger anything. */
  readonly findFault: () => string | null;
  readonly bodyLimitBytes: number;
  readonly isStopping: () => boolean;
  readonly log: DeliveryLog;
}

/** The two paths, and what each of them takes. */
const methods: ReadonlyMap<string, readonly string[]> = new Map([
  ["/webhook", ["POST"]],
  ["/health", ["GET", "HEAD"]],
]);

/** Builds the HTTP side: two paths and nothing else. It listens on nothing until it is told to. */
export function createReceiver(options: ReceiverOptions): Server {
  const server = createServer(serverOptions, (request, response) => {
    if (isClosing(request.socket)) return;
    const end = (outcome: Outcome) => {
      if (options.isStopping()) response.setHeader("connection", "close");
      conclude(response, outcome);
    };
    // Before anything is awaited: what follows a refused head on its connection must not be read as a request.
    const refusal = refuse(request);
    if (refusal) end(refusal);
    else void decide(request, options).then(end);
  });
  return hardenServer(server, { bodyLimitBytes: options.bodyLimitBytes, onCrowded: options.log.crowded });
}

/** What is wrong with a request whatever it is for, or null. */
function refuse(request: IncomingMessage): Outcome | null {
  const unrouted = findUnrouted(pathOf(request.url), request.method);
  const fault = checkHead(request);
  if (fault) return { kind: "answer", answer: unrouted ?? problemAnswer(fault.problem), isClosing: true };
  return unrouted && answered(unrouted);
}

async function decide(request: IncomingMessage, options: ReceiverOptions): Promise<Outcome> {
  try {
    if (pathOf(request.url) === "/health") return answered(healthAnswer(options.findFault()));
    return await options.webhook(request);
  } catch (error) {
    options.log.failed(error, request);
    return answered(problemAnswer({ code: "internal_error", detail: "The log of the service says more." }));
  }
}

/** What is wrong with where a request goes, or null. */
function findUnrouted(path: string, method = ""): Answer | null {
  const taken = methods.get(path);
  if (taken?.includes(method)) return null;
  if (!taken) {
    const detail = "This service has two paths: POST /webhook and GET /health.";
    return problemAnswer({ code: "not_found", detail });
  }
  const allow = taken.join(", ");
  const detail = `This path takes ${allow} only.`;
  return problemAnswer({ code: "method_not_allowed", detail }, {}, ["Allow", allow]);
}

/** The path as it was sent, to the letter: no decoding and no normalising, so no two spellings of one path. */
function pathOf(url = ""): string {
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}

function healthAnswer(fault: string | null): Answer {
  return fault === null
    ? jsonAnswer(200, { status: "ok" })
    : problemAnswer({ code: "unhealthy", detail: fault });
}

function answered(answer: Answer): Outcome {
  return { kind: "answer", answer, isClosing: false };
}

function conclude(response: ServerResponse, outcome: Outcome): void {
  if (outcome.kind === "gone") return;
  if (outcome.kind === "dropped") answerAndClose(response, outcome.answer, "broken");
  else if (outcome.isClosing) answerAndClose(response, outcome.answer);
  else sendAnswer(response, outcome.answer);
}
