import { readFile } from "node:fs/promises";
import type { Branch } from "../config.ts";
import { type GitHost, gitHostOf } from "../setup/git-host.ts";
import { parseRemoteUrl, readRemoteUrl } from "../setup/git-remote.ts";
import { type Delivery, makeDelivery, signDelivery } from "./delivery.ts";
import { post } from "./post.ts";
import { type RepositoryHead, readRepositoryHead } from "./repository-head.ts";
import type { Event } from "./sign.ts";
import { judge, toldReply, type Verdict } from "./verdict.ts";

export interface SendRequest {
  readonly url: URL;
  readonly secret: string;
  /** The git repository that a push is made up from. */
  readonly directory: string;
  /** null: the one that the remote's name tells, else GitHub. */
  readonly host: GitHost | null;
  /** The branch that a push is made up for; null: main or master. */
  readonly branch: Branch | null;
  readonly event: Event;
  /** The path of the body to send; null: it is made up. */
  readonly file: string | null;
  readonly isDryRun: boolean;
  readonly waitMs: number;
}

export interface Sent extends Verdict {
  readonly host: GitHost;
  /** What the push was made up from; null where its body came from a file, and for a ping. */
  readonly head: RepositoryHead | null;
  readonly status: number | null;
  /** The body of the answer. */
  readonly answer: string | null;
  readonly durationMs: number;
  /** The answer's status and how long it took, as a sentence. */
  readonly seen: string;
}

/**
 * Composes, signs and sends a delivery, and reads what comes back.
 *
 * @throws NoHeadError, NotMarkableError and errors of the file system where there is nothing to send
 */
export async function send(request: SendRequest): Promise<Sent> {
  const { url, event, file, directory, branch, waitMs } = request;
  const host = request.host ?? (await hostOf(directory));
  const head = event === "ping" || file !== null ? null : await readRepositoryHead(directory, host, branch);
  const delivery = await compose(request, host, head);
  const startedMs = performance.now();
  const reply = await post(url, delivery, waitMs);
  const durationMs = Math.round(performance.now() - startedMs);
  const seen = toldReply(reply, durationMs);
  const received = reply.kind === "answer" ? { status: reply.status, answer: reply.body } : null;
  return {
    ...judge(reply, url),
    host,
    head,
    seen,
    durationMs,
    ...(received ?? { status: null, answer: null }),
  };
}

/** The git host of the repository's remote, where its name tells it; what GitHub sends is what all take. */
async function hostOf(directory: string): Promise<GitHost> {
  const url = await readRemoteUrl(directory);
  const remote = url === null ? null : parseRemoteUrl(url);
  return (remote && gitHostOf(remote)) ?? "github";
}

async function compose(
  { event, secret, isDryRun, file }: SendRequest,
  host: GitHost,
  head: RepositoryHead | null,
): Promise<Delivery> {
  const options = { host, event, secret, isDryRun };
  return file === null ? makeDelivery(head, options) : signDelivery(await readFile(file), options);
}
