import type { Server } from "node:http";
import type { Socket } from "node:net";
import type { HttpProblemCode, Problem } from "../problems.ts";
import { answerAndClose, problemAnswer, writeAndClose } from "./answer.ts";
import { isAnswered, type LatestRequest } from "./latest-request.ts";
import { maxHeaders } from "./request-head.ts";

/**
 * Answers what Node's parser gave up on: broken, too large or too slow. Such bytes are no request yet, so Node has no
 * response for them; but the requests that came whole before them on the same connection are answered first, or a
 * sender would take the refusal for the answer to a push that was recorded.
 */
export function answerBrokenRequests(
  server: Server,
  latestOf: (socket: Socket) => LatestRequest | undefined,
): void {
  const broken = new WeakSet<Socket>();
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Socket) => {
    if (error.code === "ECONNRESET" || !socket.writable) {
      socket.destroy();
      return;
    }
    // Whatever follows a broken request is broken too, and reported again.
    if (broken.has(socket)) return;
    broken.add(socket);
    const answer = problemAnswer(clientProblem(error.code));
    const latest = latestOf(socket);
    if (!latest || isAnswered(latest)) writeAndClose(socket, answer, "broken");
    else if (latest.request.complete)
      latest.response.once("close", () => writeAndClose(socket, answer, "broken"));
    else if (latest.response.writableEnded) socket.destroySoon();
    else answerAndClose(latest.response, answer, "broken");
  });
}

function clientProblem(code: string | undefined): Problem<HttpProblemCode> {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return {
        code: "request_timeout",
        detail: "The headers did not arrive within 5 s, or the body within 10 s.",
      };
    case "HPE_HEADER_OVERFLOW":
      return {
        code: "headers_too_large",
        detail: `The headers are larger than 16 KiB, or there are ${maxHeaders} or more.`,
      };
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return { code: "payload_too_large", detail: "The extensions of a chunk are larger than 16 KiB." };
    default:
      return { code: "malformed_request", detail: "The request could not be read as HTTP/1.1." };
  }
}
