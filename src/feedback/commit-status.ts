import type { CommitStatus } from "../config/commit-status.ts";
import { type Deployment, liveCommit } from "../deployments/deployment.ts";
import type { HttpAnswer } from "../platform/http.ts";
import { bitbucketApi } from "./hosts/bitbucket.ts";
import { giteaApi } from "./hosts/gitea.ts";
import { githubApi } from "./hosts/github.ts";
import { gitlabApi } from "./hosts/gitlab.ts";
import type { HostApi, HostRequest, StatusOnCommit } from "./hosts/host-api.ts";
import { type Message, summaryOf } from "./message.ts";
import { delivered, failure, request, type SendOutcome, sendOutcomeOf } from "./outcome.ts";

/** How each kind of git host is asked. */
export const hostApis: Readonly<Record<CommitStatus["host"], HostApi>> = {
  github: githubApi,
  gitlab: gitlabApi,
  bitbucket: bitbucketApi,
  gitea: giteaApi,
  forgejo: giteaApi,
};

/**
 * Shows how a deployment goes on its commit. The script may have checked out a newer commit than the one that was pushed:
 * then the result is shown on both.
 */
export async function sendCommitStatus(
  settings: CommitStatus,
  message: Message,
  signal: AbortSignal,
): Promise<SendOutcome> {
  const { deployment } = message.report;
  const api = hostApis[settings.host];
  for (const commit of new Set([deployment.commit, liveCommit(deployment)])) {
    const outcome = await show(settings, api.status(settings, statusOf(message, commit)), signal);
    if (outcome.kind !== "delivered") return outcome;
  }
  return delivered;
}

async function show(settings: CommitStatus, asked: HostRequest, signal: AbortSignal): Promise<SendOutcome> {
  try {
    const answer = await askHost(settings, asked, signal);
    if (hostApis[settings.host].hasItAlready?.(answer)) return delivered;
    return answer.status === 404 ? notThere : sendOutcomeOf(answer);
  } catch (error) {
    return failure(error);
  }
}

/** Sends one request to the git host, with the token. @throws as `sendHttp` */
export function askHost(
  { host, token }: CommitStatus,
  { method, url, body }: HostRequest,
  signal?: AbortSignal,
): Promise<HttpAnswer> {
  const headers = {
    ...{ "content-type": "application/json", "user-agent": "hotpush" },
    ...hostApis[host].authorize(token),
  };
  const content = body === undefined ? {} : { body: JSON.stringify(body) };
  return request(url, { method, headers, signal, ...content });
}

/** Later results must not wait for a commit that a force push removed. */
const notThere: SendOutcome = {
  kind: "refused",
  fault: "it answered 404: the commit is not there, or the token has too few rights",
};

/** What a commit of a deployment shows. */
export function statusOf(message: Message, commit: string): StatusOnCommit {
  const { ref, project, state } = message.report.deployment;
  return {
    commit,
    branch: ref.replace(/^refs\/heads\//, ""),
    context: `hotpush/${project}`,
    state: shownStates[state],
    description: summaryOf(message),
    link: message.link,
  };
}

/** A push that changes nothing of the project is no reason for a red mark. */
const shownStates: Readonly<Record<Deployment["state"], StatusOnCommit["state"]>> = {
  queued: "running",
  running: "running",
  interrupted: "running",
  succeeded: "succeeded",
  skipped: "succeeded",
  failed: "failed",
  timed_out: "failed",
  cancelled: "cancelled",
  superseded: "cancelled",
};
