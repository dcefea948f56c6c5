import { hostname } from "node:os";
import { type DeploymentJson, deploymentJson } from "../control/deployment-json.ts";
import type { Message } from "./message.ts";

/** What a webhook is sent; docs/notifications.md has each member. */
export interface MessageJson {
  /** `deployment.started`, or `deployment.` and the state in which it ended; `test`. */
  readonly type: string;
  /** When that happened. */
  readonly timestamp: string;
  readonly data: {
    readonly server: string;
    readonly deployment: DeploymentJson;
    readonly isAfterFailure: boolean;
    readonly step: string | null;
    readonly lastLines: readonly string[];
    readonly link: string | null;
  };
}

export function messageJson({ report, step, lastLines, link }: Message): MessageJson {
  const { deployment, event, isAfterFailure } = report;
  const { state, startedAtMs, finishedAtMs, createdAtMs } = deployment;
  const atMs = (event === "started" ? startedAtMs : finishedAtMs) ?? createdAtMs;
  return {
    type: event === "test" ? event : `deployment.${event === "started" ? event : state}`,
    timestamp: new Date(atMs).toISOString(),
    data: {
      server: hostname(),
      deployment: deploymentJson(deployment),
      isAfterFailure,
      step,
      lastLines,
      link,
    },
  };
}
