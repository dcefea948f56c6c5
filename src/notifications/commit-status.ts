import type { HostedRepository } from "#config/git-hosts";
import type { CommitStatus } from "#config/project";
import { type Deployment, liveCommit } from "#deployments/deployment";
import { branchOf } from "#deployments/push";
import type { HttpAnswer, HttpRequest } from "#platform/http";
import { type Message, summaryOf } from "./message.ts";
import { delivered, failure, request, type SendOutcome, sendOutcomeOf } from "./outcome.ts";

/** What is shown on a commit. */
interface StatusOnCommit {
  readonly commit: string;
  readonly branch: string;
  /** Distinguishes it from those of other projects and programs: `hotpush/shop`. */
  readonly context: string;
  readonly state: "running" | "succeeded" | "failed" | "cancelled";
  readonly description: string;
  /** Where a click on it leads; null: nowhere. */
  readonly link: string | null;
}

/** How the API of a kind of git host takes the status of a commit. */
interface HostApi {
  readonly headers: (token: string) => Readonly<Record<string, string>>;
  /** The repository's address in the API. It answers 200 if the token shows the repository. */
  readonly repository: (repository: HostedRepository) => string;
  /** The path of a commit's status below that. */
  readonly path: (commit: string) => string;
  readonly body: (status: StatusOnCommit, repository: HostedRepository) => object;
  readonly states: Readonly<Record<StatusOnCommit["state"], string>>;
  /** Whether this status of an answer about a commit that is not there means that the token may show one. */
  readonly mayShow: (answered: number) => boolean;
  /** Whether an answer that looks like a refusal means that the host has it already. */
  readonly hasItAlready?: (answer: HttpAnswer) => boolean;
}

/** GitHub refuses longer ones. */
const longestDescription = 140;
/** Of Bitbucket. */
const longestKey = 40;
/** The right to write, whatever the host says of the commit. */
const isPermitted = (answered: number) => answered !== 401 && answered !== 403 && answered < 500;
const linkAs = (name: string, { link }: StatusOnCommit) => (link ? { [name]: link } : {});

/** What Gitea took over from GitHub. */
const githubLike = {
  path: (commit: string) => `/statuses/${commit}`,
  body: (status: StatusOnCommit) => ({ context: status.context, ...linkAs("target_url", status) }),
  states: { running: "pending", succeeded: "success", failed: "failure", cancelled: "error" },
};

const gitea: HostApi = {
  ...githubLike,
  headers: (token) => ({ authorization: `token ${token}` }),
  repository: (repository) => `${rootOf(repository)}/api/v1/repos/${ownerAndName(repository)}`,
  // A commit that is not there is a fault of the server to some versions.
  mayShow: (answered) => answered === 500 || isPermitted(answered),
};

const hostApis: Readonly<Record<CommitStatus["host"], HostApi>> = {
  gitea,
  forgejo: gitea,
  // The REST API of GitHub and of GitHub Enterprise Server.
  github: {
    ...githubLike,
    headers: (token) => ({
      authorization: `Bearer ${token}`,
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
    }),
    repository: (repository) => {
      const isCloud = repository.url.host === "github.com";
      const api = isCloud ? "https://api.github.com" : `${rootOf(repository)}/api/v3`;
      return `${api}/repos/${ownerAndName(repository)}`;
    },
    // Without the right, a public repository answers 404, as if it was not there.
    mayShow: (answered) => answered === 422,
  },
  // A project is named by its whole path, with the groups that it is in.
  gitlab: {
    headers: (token) => ({ "private-token": token }),
    repository: ({ url }) => `${url.origin}/api/v4/projects/${encodeURIComponent(url.pathname.slice(1))}`,
    path: githubLike.path,
    body: (status) => ({ name: status.context, ref: status.branch, ...linkAs("target_url", status) }),
    states: { running: "running", succeeded: "success", failed: "failed", cancelled: "canceled" },
    mayShow: isPermitted,
    // The host refuses a state that it has: "Cannot transition status via :run from :running".
    hasItAlready: ({ status, body }) => status === 400 && body.includes("Cannot transition status"),
  },
  // Bitbucket Cloud.
  "bitbucket-cloud": {
    headers: (token) => ({ authorization: `Bearer ${token}` }),
    repository: (repository) => {
      const isCloud = repository.url.host === "bitbucket.org";
      const api = isCloud ? "https://api.bitbucket.org/2.0" : `${rootOf(repository)}/2.0`;
      return `${api}/repositories/${ownerAndName(repository)}`;
    },
    path: (commit) => `/commit/${commit}/statuses/build`,
    body: ({ context, commit, link }, { url }) => ({
      key: context.slice(0, longestKey),
      name: context,
      // It must have one.
      url: link ?? `${url.href}/commits/${commit}`,
    }),
    states: { running: "INPROGRESS", succeeded: "SUCCESSFUL", failed: "FAILED", cancelled: "STOPPED" },
    mayShow: isPermitted,
  },
};

/** What is before `owner/name` in a repository's address. */
function rootOf({ url }: HostedRepository): string {
  return `${url.origin}${url.pathname.split("/").slice(0, -2).join("/")}`;
}

function ownerAndName({ url }: HostedRepository): string {
  return url.pathname.split("/").slice(-2).join("/");
}

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
  const { ref, project, state } = deployment;
  // Only what changes nothing of the project has its head recorded. An earlier start has shown that it runs.
  const hasNoHead = state === "skipped" && deployment.checkedOutCommit === null;
  if (hasNoHead && deployment.attempts <= 1) return delivered;
  const shown = { branch: branchOf(ref), link: message.link, context: `hotpush/${project}` };
  const status = {
    ...shown,
    state: hasNoHead ? "cancelled" : shownStates[state],
    description: summaryOf(message),
  };
  let last = delivered;
  for (const commit of new Set([deployment.commit, liveCommit(deployment)])) {
    const outcome = await showStatus(settings, { ...status, commit }, signal);
    if (outcome.kind === "failed") return outcome;
    // The pushed commit may be gone; the other one is there all the same.
    if (outcome.kind === "refused") last = outcome;
  }
  return last;
}

async function showStatus(
  settings: CommitStatus,
  status: StatusOnCommit,
  signal: AbortSignal,
): Promise<SendOutcome> {
  try {
    const answer = await askForStatus(settings, status, signal);
    if (hostApis[settings.host].hasItAlready?.(answer)) return delivered;
    return answer.status === 404 ? notThere : sendOutcomeOf(answer);
  } catch (error) {
    return failure(error);
  }
}

/** Later results must not wait for a commit that a force push removed. */
const notThere: SendOutcome = {
  kind: "refused",
  fault: "it answered 404: the commit is not there, or the token has too few rights",
};

/** A push that changes nothing of the project is no reason for a red mark; what was skipped for another reason gets none, or "cancelled" after an earlier start. */
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

function askForStatus(
  settings: CommitStatus,
  status: StatusOnCommit,
  signal?: AbortSignal,
): Promise<HttpAnswer> {
  const { states, body, path } = hostApis[settings.host];
  const { description: text } = status;
  const description = text.length > longestDescription ? `${text.slice(0, longestDescription - 1)}…` : text;
  const shown = { state: states[status.state], description, ...body(status, settings) };
  return askRepository(settings, "POST", path(status.commit), shown, { signal });
}

/** Sends one request to a path below the repository's address in the host's API, with the token. @throws as `sendHttp` */
export function askRepository(
  settings: CommitStatus,
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE",
  path: string,
  body?: object,
  options: Pick<HttpRequest, "signal"> & { readonly longestBytes?: number } = {},
): Promise<HttpAnswer> {
  const token = hostApis[settings.host].headers(settings.token.reveal());
  const headers = { "content-type": "application/json", "user-agent": "hotpush", ...token };
  const text = body === undefined ? {} : { body: JSON.stringify(body) };
  const sent = { method, signal: options.signal, headers, ...text };
  return request(new URL(`${repositoryAddress(settings)}${path}`), sent, options.longestBytes);
}

/** The address of a repository in its host's API. */
export function repositoryAddress(repository: HostedRepository): string {
  return hostApis[repository.host].repository(repository);
}

/**
 * Asks the git host whether the token may show results on commits. It shows one on a commit that cannot be there: the
 * host checks the token first, so nothing is changed.
 *
 * @returns what is wrong, or null
 * @throws the system's error, if the host cannot be reached
 */
export async function findTokenFault(settings: CommitStatus): Promise<string | null> {
  const seen = await askRepository(settings, "GET", "");
  if (seen.status === 401) return "the host does not accept the token (401)";
  if (seen.status !== 200) return `the token does not show the repository (${seen.status})`;
  const where = { commit: "0".repeat(40), branch: "main", context: "hotpush/doctor", link: null };
  const description = "A check that the token may show results";
  const { status } = await askForStatus(settings, { ...where, state: "running", description });
  if (hostApis[settings.host].mayShow(status)) return null;
  return `the token may not show results on commits (${status})`;
}
