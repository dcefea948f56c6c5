import { hostname } from "node:os";
import type { CommitStatus, HostEnvironment } from "../config/commit-status.ts";
import { askHost, hostApis, statusOf } from "./commit-status.ts";
import { type AskRepository, showAtGithub, showAtGitlab } from "./hosts/deployments.ts";
import type { Message } from "./message.ts";
import { delivered, failure, type SendOutcome } from "./outcome.ts";

/** Shows a deployment to an environment at the git host. One whose script was not run is not shown. */
export async function sendDeployment(
  settings: CommitStatus,
  environment: HostEnvironment,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { deployment } = message.report;
  if (deployment.state === "skipped") return delivered;
  const { context: _, ...status } = statusOf(message, deployment.commit);
  const state = deployment.state === "superseded" ? "superseded" : status.state;
  const key = `${hostname()} ${deployment.project} ${deployment.id}.${deployment.attempts}`;
  const root = hostApis[settings.host].repository(settings).href;
  const ask: AskRepository = (method, path, body) =>
    askHost(settings, { method, url: new URL(root + path), ...(body ? { body } : {}) }, signal);
  const show = settings.host === "github" ? showAtGithub : showAtGitlab;
  try {
    return await show(ask, { ...status, environment, state, key });
  } catch (error) {
    return failure(error);
  }
}
