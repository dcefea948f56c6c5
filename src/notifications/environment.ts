import { hostname } from "node:os";
import type { CommitStatus, HostEnvironment } from "#config/commit-status";
import type { HttpAnswer } from "#platform/http";
import { askRepository, type StatusOnCommit, statusOf } from "./commit-status.ts";
import type { Message } from "./message.ts";
import { delivered, failure, type SendOutcome, sendOutcomeOf } from "./outcome.ts";

/** A deployment to an environment, as a git host shows it. */
interface ShownDeployment extends Omit<StatusOnCommit, "context" | "state"> {
  readonly environment: HostEnvironment;
  readonly state: StatusOnCommit["state"] | "superseded";
  /** Finds it again: the same for each report on one run of the script, and for no other run. */
  readonly key: string;
}

/** Sends a request to a path below the repository's address in the API. @throws as `sendHttp` */
type Ask = (method: "GET" | "POST" | "PUT", path: string, body?: object) => Promise<HttpAnswer>;

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
  const ask: Ask = (method, path, body) => askRepository(settings, method, path, body, signal);
  const show = settings.host === "github" ? showAtGithub : showAtGitlab;
  try {
    return await show(ask, { ...status, environment, state, key });
  } catch (error) {
    return failure(error);
  }
}

const githubStates = {
  running: "in_progress",
  succeeded: "success",
  failed: "failure",
  cancelled: "error",
  superseded: "inactive",
} as const;
const longestDescription = 140;

/** At GitHub, a deployment is an object that is made once, and gets a status for each report. */
async function showAtGithub(ask: Ask, shown: ShownDeployment): Promise<SendOutcome> {
  const { environment, state, link, key, commit } = shown;
  const description = shown.description.slice(0, longestDescription);
  const query = new URLSearchParams({ sha: commit, environment: environment.name });
  const known = await ask("GET", `/deployments?${query}`);
  if (known.status !== 200) return sendOutcomeOf(known);
  let id = idOf(listIn(known).find(({ payload }) => keyIn(payload) === key));
  if (id === null) {
    // Without this list GitHub waits for the marks of the commit, one of which is ours.
    const checks = { auto_merge: false, required_contexts: [] };
    const payload = { hotpush: key };
    const body = { ref: commit, environment: environment.name, ...checks, payload, description };
    const made = await ask("POST", "/deployments", body);
    if (made.status !== 201) return sendOutcomeOf(made);
    id = idOf(objectIn(made));
    if (id === null)
      return { kind: "failed", fault: "its answer has no number of a deployment", waitMs: null };
  }
  const links = {
    ...(link ? { log_url: link } : {}),
    ...(environment.url ? { environment_url: environment.url } : {}),
  };
  const status = { state: githubStates[state], description, ...links };
  return sendOutcomeOf(await ask("POST", `/deployments/${id}/statuses`, status));
}

const gitlabStates = {
  running: "running",
  succeeded: "success",
  failed: "failed",
  cancelled: "canceled",
  superseded: "canceled",
} as const;

/** At GitLab, the deployment of this commit that runs gets the result; if none runs, a new one is made. */
async function showAtGitlab(ask: Ask, shown: ShownDeployment): Promise<SendOutcome> {
  const { environment, commit, branch } = shown;
  const status = gitlabStates[shown.state];
  const query = new URLSearchParams({ environment: environment.name, order_by: "id", sort: "desc" });
  const known = await ask("GET", `/deployments?${query}`);
  if (known.status !== 200) return sendOutcomeOf(known);
  const last = listIn(known).find(({ sha }) => sha === commit);
  // The host refuses a state that it has.
  if (last?.status === status) return delivered;
  const running = last?.status === "running" ? idOf(last) : null;
  if (running !== null) return sendOutcomeOf(await ask("PUT", `/deployments/${running}`, { status }));
  const body = { environment: environment.name, sha: commit, ref: branch, tag: false, status };
  return sendOutcomeOf(await ask("POST", "/deployments", body));
}

type JsonObject = Readonly<Record<string, unknown>>;

/** The host may answer anything: what is not as expected is as if it was not there. */
function listIn(answer: HttpAnswer): readonly JsonObject[] {
  const value = parse(answer.body.toString());
  return Array.isArray(value) ? value.filter((one) => typeof one === "object" && one !== null) : [];
}

function objectIn(answer: HttpAnswer): JsonObject {
  const value = parse(answer.body.toString());
  return typeof value === "object" && value !== null ? (value as JsonObject) : {};
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function idOf(object: JsonObject | undefined): number | null {
  return Number.isSafeInteger(object?.id) ? Number(object?.id) : null;
}

/** The payload comes back as an object, or as its text. */
function keyIn(payload: unknown): unknown {
  const value = typeof payload === "string" ? parse(payload) : payload;
  return typeof value === "object" && value !== null ? (value as JsonObject).hotpush : null;
}
