import { readFile } from "node:fs/promises";
import type { Branch } from "../config.ts";
import type { GitHost } from "../init/git-host.ts";
import { type Delivery, makeDelivery, type SentEvent, signDelivery } from "./delivery.ts";
import { post } from "./post.ts";
import { type RepositoryHead, readRepositoryHead } from "./repository-head.ts";
import { describeReply, readVerdict, type Verdict } from "./verdict.ts";

export interface SendRequest {
  readonly url: URL;
  readonly secret: string;
  /** The git repository whose head is pushed. */
  readonly directory: string;
  /** Decides what the payload calls the repository; null: the host that the remote's name shows. */
  readonly host: GitHost | null;
  /** The branch whose head is pushed; null: main or master. */
  readonly branch: Branch | null;
  readonly event: SentEvent;
  /** The path of the body to send; null: a body is made. */
  readonly file: string | null;
  readonly isDryRun: boolean;
  readonly waitMs: number;
}

export interface Sent extends Verdict {
  /** What was pushed; null for a ping, and if the body came from a file. */
  readonly head: RepositoryHead | null;
  readonly status: number | null;
  /** The body of the answer. */
  readonly answer: string | null;
  readonly durationMs: number;
  /** The answer's status and how long it took, as a sentence. */
  readonly seen: string;
}

/**
 * Makes, signs and sends a delivery, and reads the answer.
 *
 * @throws NoHeadError, NotMarkableError and errors of the file system if there is nothing to send
 */
export async function send(request: SendRequest): Promise<Sent> {
  const { url, event, file, directory, host, branch, waitMs } = request;
  const head = event === "ping" || file !== null ? null : await readRepositoryHead(directory, host, branch);
  const delivery = await makeOrRead(request, head);
  const startedMs = performance.now();
  const reply = await post(url, delivery, waitMs);
  const durationMs = Math.round(performance.now() - startedMs);
  const { status, body: answer } = reply.kind === "answer" ? reply : { status: null, body: null };
  return {
    ...readVerdict(reply, url),
    ...{ head, status, answer, durationMs },
    seen: describeReply(reply, durationMs),
  };
}

async function makeOrRead(request: SendRequest, head: RepositoryHead | null): Promise<Delivery> {
  return request.file === null
    ? makeDelivery(head, request)
    : signDelivery(await readFile(request.file), request);
}
