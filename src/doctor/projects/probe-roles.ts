import type { Environment } from "../../config/settings.ts";
import { callService, NotRunningError } from "../../control/client.ts";
import { sendHttp } from "../../platform/http.ts";
import { withShortPath } from "../../platform/unix-socket.ts";

/** What the two processes of a service answer on their sockets. */
export interface RolesAnswer {
  readonly inboxSocket: string;
  /** What waits in the inbox of `receive`; or the code of the error that kept it from answering. */
  readonly receive: { readonly waiting: number; readonly sinceMs: number | null } | string;
  /** Why `run` cannot take from the inbox, null if it can; or why it cannot be asked. */
  readonly run: { readonly failure: string | null } | { readonly fault: string };
}

const answerTimeoutMs = 5_000;
/** It may be in the hands of an attacker. */
const longestAnswerBytes = 1024;

/** Asks both processes. @returns null if one process receives and deploys */
export async function probeRoles(env: Environment, statePath: string): Promise<RolesAnswer | null> {
  const inboxSocket = env.INBOX_SOCKET?.trim() || `${statePath}/inbox.sock`;
  const [receive, run] = await Promise.all([askReceive(inboxSocket), askRun(statePath)]);
  const isSplit = Boolean(env.INBOX_SOCKET?.trim()) || receive !== "ENOENT" || run.inbox !== null;
  if (!isSplit) return null;
  const { fault } = run;
  return { inboxSocket, receive, run: fault === null ? { failure: run.inbox?.failure ?? null } : { fault } };
}

async function askReceive(socket: string): Promise<RolesAnswer["receive"]> {
  try {
    const { body } = await withShortPath(socket, (socketPath) =>
      sendHttp({ socketPath, path: "/waiting" }, { timeoutMs: answerTimeoutMs }, longestAnswerBytes),
    );
    const { waiting, sinceMs } = JSON.parse(body.toString()) as Readonly<Record<string, unknown>>;
    return { waiting: Number(waiting), sinceMs: typeof sinceMs === "number" ? sinceMs : null };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "no answer that makes sense";
  }
}

interface AskedRun {
  readonly inbox: { readonly failure: string | null } | null;
  readonly fault: string | null;
}

async function askRun(statePath: string): Promise<AskedRun> {
  try {
    const { inbox } = await callService<Pick<AskedRun, "inbox">>(statePath, "GET", "/status");
    return { inbox, fault: null };
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
    return { inbox: null, fault: error.message };
  }
}
