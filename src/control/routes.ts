import { cancelDeployment } from "./cancel.ts";
import type { ControlContext } from "./context.ts";
import { deployNow } from "./deploy.ts";
import { followDeployment } from "./follow.ts";
import { showDeployment, showHistory } from "./history.ts";
import { showLog } from "./log.ts";
import type { Reply } from "./reply.ts";
import { rollBack } from "./rollback.ts";
import { showStatus } from "./status.ts";

/** What a request asks for beside its path. */
export interface Asked {
  /** The number in the path, or null for "the one that runs, else the last". */
  readonly id: number | null;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
}

type Answer = (context: ControlContext, asked: Asked) => Reply | Promise<Reply>;

/** `{id}` is a number, or `latest`. */
const routes: Readonly<Record<string, Answer>> = {
  "GET /status": showStatus,
  "GET /deployments": showHistory,
  "GET /deployments/{id}": showDeployment,
  "GET /deployments/{id}/log": showLog,
  "GET /deployments/{id}/events": followDeployment,
  "POST /deployments": deployNow,
  "POST /deployments/{id}/cancel": cancelDeployment,
  "POST /rollback": rollBack,
};

export function findRoute(method: string, path: string): { answer: Answer; id: number | null } | null {
  const [, word] = /^\/deployments\/(\d{1,15}|latest)(?=\/|$)/.exec(path) ?? [];
  const answer = routes[`${method} ${word === undefined ? path : path.replace(word, "{id}")}`];
  return answer ? { answer, id: word === undefined || word === "latest" ? null : Number(word) } : null;
}
