import { createHmac, randomUUID } from "node:crypto";
import { existsSync } from "node:fs";
import { basename } from "node:path";
import { type GitHost, gitHostOf, isGitHost } from "#config/git-hosts";
import { readSecretText, secretFault } from "#config/secret";
import { type Branch, branches, type Environment, variables } from "#config/settings";
import { webhookUrl, webhookUrlOf } from "#config/values";
import { withTrustedDotenv } from "#platform/env-file";
import { sendHttp } from "#platform/http";
import { CommandError } from "#problems";
import { git, parseRemoteUrl, readRemoteUrl } from "#setup/project";
import { chooseAnyProject } from "#setup/server";
import { payloadName } from "#setup/webhook-form";
import { type DeliveryReply, readVerdict, type SentTo, type Verdict } from "./verdict.ts";

export interface SendSettings {
  readonly url: URL;
  readonly secret: string;
  /** The git repository whose head is pushed. */
  readonly directory: string;
  /** Decides what the payload calls the repository; null: the host that the remote's name shows. */
  readonly host: GitHost | null;
  /** The branch whose head is pushed; null: main or master. */
  readonly branch: Branch | null;
  readonly server: SentTo;
}

export interface SendRequest extends SendSettings {
  readonly isDryRun: boolean;
}

export interface Sent extends Verdict {
  /** What was pushed. */
  readonly head: RepositoryHead;
  readonly status: number | null;
  /** The body of the answer. */
  readonly answer: string | null;
  readonly durationMs: number;
}

/** The time that a git host waits for an answer. */
const timeoutMs = 10_000;
const mostAnswerBytes = 64 * 1024;

/**
 * Makes, signs and sends a push of the repository's head, and reads the answer. Like a git host it does not
 * follow redirects, and gives up after 10 s.
 *
 * @throws CommandError if there is nothing to send
 */
export async function send(request: SendRequest): Promise<Sent> {
  const { url, server } = request;
  const head = await readHead(request);
  const startedMs = performance.now();
  const reply = await post(url, signedPush(request, head));
  const durationMs = Math.round(performance.now() - startedMs);
  const { status, body: answer } =
    reply instanceof Error ? { status: null, body: null } : { ...reply, body: reply.body.toString() };
  return { ...readVerdict(reply, url, server), head, status, answer, durationMs };
}

/**
 * Sends one signed ping, as a git host does when its form is saved: Hotpush answers `pong` and records nothing.
 */
export async function ping(url: URL, secret: string, server: SentTo): Promise<Verdict> {
  return readVerdict(await post(url, signed("ping", pingPayload, secret)), url, server);
}

/**
 * The same push, for another machine to send.
 *
 * @throws CommandError if there is nothing to send
 */
export async function signRequest(request: SendRequest): Promise<SignedRequest> {
  return signedPush(request, await readHead(request));
}

/** What a git host sends: whoever has it can send it again, and nothing else. */
export interface SignedRequest {
  readonly method: "POST";
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/**
 * GitHub's push. Before and after are the same commit: no step from one commit to another is claimed. Nobody is named as the
 * pusher, because nobody pushed. The mark of a dry run is its last member.
 */
function signedPush({ secret, isDryRun }: SendRequest, { ref, commit, repository }: RepositoryHead) {
  // The time makes it another delivery each time.
  const head_commit = { id: commit, timestamp: new Date().toISOString() };
  const push = { ref, before: commit, after: commit, repository: { full_name: repository }, head_commit };
  return signed("push", { ...push, ...(isDryRun && { hotpush: { dryRun: true } }) }, secret);
}

/** Signs as GitHub does: Hotpush takes that signature with every secret. */
function signed(event: "push" | "ping", payload: object, secret: string): SignedRequest {
  const body = JSON.stringify(payload);
  const headers = {
    "content-type": "application/json",
    "user-agent": "GitHub-Hookshot/hotpush",
    "x-github-event": event,
    "x-github-delivery": randomUUID(),
    "x-hub-signature-256": `sha256=${createHmac("sha256", secret).update(body).digest("hex")}`,
  };
  return { method: "POST", headers, body };
}

function post(url: URL, request: SignedRequest): Promise<DeliveryReply> {
  return sendHttp(url, { ...request, timeoutMs }, mostAnswerBytes).catch((error: Error) => error);
}

const pingPayload = { zen: "Keep it logically awesome.", hook_id: 1, hook: { events: ["push"] } };

/** The newest commit of a repository's main branch, as a push reports it. */
export interface RepositoryHead {
  readonly ref: string;
  readonly commit: string;
  /** First line of the commit's message. */
  readonly subject: string;
  /** `owner/name` as the host's payload has it, from the remote's URL; from the directory's name if there is none. */
  readonly repository: string;
}

/** Of `main`, else of `master`: of a local branch, else of the remote's. */
async function readHead({ directory, branch, host }: SendSettings): Promise<RepositoryHead> {
  const names = branch === null ? branches : [branch];
  for (const ref of ["heads", "remotes/origin"].flatMap((at) => names.map((name) => `refs/${at}/${name}`))) {
    // Without a signature: the settings of the checkout name the program that verifies one.
    const format = "--format=%H %s";
    const found = await git(directory, "log", "-1", "--no-show-signature", format, ref, "--");
    if (found === null) continue;
    const [commit = "", subject = ""] = found.split(/ (.*)/s);
    const repository = await repositoryName(directory, host);
    return { ref: `refs/heads/${basename(ref)}`, commit, subject, repository };
  }
  throw new CommandError(
    `git finds no commit of ${names.join(" or ")} in ${directory}, and no other branch is deployed. Run this in the checkout of your project, as its owner.`,
  );
}

async function repositoryName(directory: string, host: GitHost | null): Promise<string> {
  const url = await readRemoteUrl(directory);
  const remote = url === null ? null : parseRemoteUrl(url);
  if (remote) return payloadName(remote.path, host ?? gitHostOf(remote));
  const top = (await git(directory, "rev-parse", "--show-toplevel")) ?? directory;
  return `local/${basename(url ?? top).replace(/\.git$/, "")}`;
}

/**
 * Reads the settings as the service would have them: from the environment, and from the file of the project, on a server or in
 * PROJECTS_PATH; else from `.env` of the working directory.
 *
 * @param address the address to send to; undefined: WEBHOOK_URL, else the service on this machine
 * @param project the project whose file has its settings; undefined: that of the working directory
 * @throws CommandError if there is no secret, no address, or no such project
 */
export async function readSendSettings(
  env: NodeJS.ProcessEnv,
  workingDirectory: string,
  address: string | undefined,
  project?: string,
): Promise<SendSettings> {
  const { server, project: found } = chooseAnyProject(env, workingDirectory, project);
  if (project !== undefined && found === null)
    throw new CommandError(
      `There is no project ${project}: this machine has no server, and PROJECTS_PATH is not set.`,
    );
  const usual = server && {
    WEBHOOK_URL: `http://127.0.0.1:${server.env.HTTP_PORT || "80"}/webhook/${found?.name}`,
  };
  const settings: Environment =
    found === null ? withTrustedDotenv(env, workingDirectory) : { ...usual, ...found.env, ...env };
  const { REPO_PATH, BRANCH, HOTPUSH_GIT_HOST: host = "" } = settings;
  return {
    url: webhookUrlOf(urlToSend(address, settings), server === null ? (found?.name ?? null) : null),
    secret: secretToSend(settings),
    host: isGitHost(host) ? host : null,
    directory: REPO_PATH && existsSync(REPO_PATH) ? REPO_PATH : workingDirectory,
    branch: variables.BRANCH.read(BRANCH?.trim() ?? ""),
    server: found && (server?.files ?? null),
  };
}

/**
 * The secret to sign with, from the variables that the service reads.
 *
 * @throws CommandError if there is none that the service would accept
 */
export function secretToSend(env: Environment): string {
  if (!env.WEBHOOK_SECRET && !env.WEBHOOK_SECRET_FILE)
    throw new CommandError(
      "There is no WEBHOOK_SECRET: neither in the environment nor in .env here (root reads no .env that another user can change). Go to your project's directory, or write one with: hotpush init",
    );
  const { text, fault } = readSecretText(env, "WEBHOOK_SECRET");
  const wrong = fault ?? secretFault("WEBHOOK_SECRET", text);
  if (wrong !== null) throw new CommandError(wrong);
  return text;
}

function urlToSend(wanted: string | undefined, env: Environment): URL {
  const text = wanted ?? env.WEBHOOK_URL ?? `http://127.0.0.1:${env.WEBHOOK_PORT || "9000"}/webhook`;
  const url = webhookUrl(text);
  if (url === null)
    throw new CommandError(
      "The address must begin with http:// or https://, such as https://shop.example.org/webhook.",
    );
  return url;
}
