import { existsSync, readFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv } from "node:util";
import { isProjectName } from "#config/project-files";
import { readSecretText, secretFault } from "#config/secret";
import type { ServerFiles } from "#config/server";
import type { Branch } from "#config/settings";
import { variables } from "#config/settings";
import { webhookUrlOf } from "#config/values";
import { withDotenv } from "#platform/env-file";
import { sendHttp } from "#platform/http";
import { CommandError } from "#problems";
import { git } from "#setup/project";
import { chooseProject, findServer } from "#setup/server";
import { type GitHost, isGitHost } from "#setup/webhook-form";
import { type Delivery, makeDelivery, type SentEvent, signDelivery } from "./delivery.ts";
import { type RepositoryHead, readRepositoryHead } from "./repository-head.ts";
import { codeOf, type DeliveryReply, describeReply, readVerdict, type Verdict } from "./verdict.ts";

type Environment = Readonly<Record<string, string | undefined>>;

export interface SendSettings {
  readonly url: URL;
  readonly secret: string;
  /** The git repository whose head is pushed. */
  readonly directory: string;
  /** Decides what the payload calls the repository; null: the host that the remote's name shows. */
  readonly host: GitHost | null;
  /** The branch whose head is pushed; null: main or master. */
  readonly branch: Branch | null;
  /** The server that has the project; null: a service of its own. */
  readonly server: Pick<ServerFiles, "path"> | null;
}

export interface SendRequest extends SendSettings {
  readonly event: SentEvent;
  /** The path of the body to send; null: a body is made. */
  readonly file: string | null;
  readonly isDryRun: boolean;
  /** How long to retry while nothing answers, or only a proxy does. */
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

/** The time that a git host waits for an answer. */
const timeoutMs = 10_000;
const mostAnswerBytes = 64 * 1024;
const retryPauseMs = 500;

/** Answers of a proxy whose service is not up yet, and of a service that starts or stops. */
const notYetStatuses = [502, 503, 504];
const notYetCodes = /^(?:ECONNREFUSED|ECONNRESET|EHOSTUNREACH|EPIPE|ERR_SSL_TLSV1_ALERT_INTERNAL_ERROR)$/;

/**
 * Makes, signs and sends a delivery, and reads the answer. Like a git host it does not follow redirects, and gives up
 * after 10 s.
 *
 * @throws CommandError if there is nothing to send
 */
export async function send(request: SendRequest): Promise<Sent> {
  const { url, event, file, directory, host, branch, waitMs } = request;
  const head = event === "ping" || file !== null ? null : await readRepositoryHead(directory, host, branch);
  const delivery =
    file === null ? makeDelivery(head, request) : signDelivery(await readBodyFile(file), request);
  const startedMs = performance.now();
  const reply = await post(url, delivery, startedMs + waitMs);
  const durationMs = Math.round(performance.now() - startedMs);
  const { status, body } = reply instanceof Error ? { status: null, body: null } : reply;
  const answer = body?.toString() ?? null;
  const seen = describeReply(reply, durationMs);
  return { ...readVerdict(reply, url, request.server), head, status, answer, durationMs, seen };
}

async function readBodyFile(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error) {
    throw new CommandError(`${path} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

async function post(url: URL, delivery: Delivery, deadlineMs: number): Promise<DeliveryReply> {
  const request = { method: "POST", ...delivery, timeoutMs };
  for (;;) {
    const reply = await sendHttp(url, request, mostAnswerBytes).catch((error: Error) => error);
    const isNotYet =
      reply instanceof Error ? notYetCodes.test(codeOf(reply)) : notYetStatuses.includes(reply.status);
    if (!isNotYet || performance.now() + retryPauseMs > deadlineMs) return reply;
    await sleep(retryPauseMs);
  }
}

/**
 * Reads the settings as the service would have them: from the environment, and from the file of the project of the server;
 *  else from `.env` of the working directory and, if that names no secret, `.env` of the repository around it.
 *
 * @param address the address to send to; undefined: WEBHOOK_URL, else the service on this machine
 * @param project the project whose file has its settings; undefined: that of the working directory, or the only one
 * @throws CommandError if there is no secret, or no address
 */
export async function readSendSettings(
  env: NodeJS.ProcessEnv,
  workingDirectory: string,
  address: string | undefined,
  project?: string,
): Promise<SendSettings> {
  const onMachine = projectOnMachine(env, workingDirectory, project);
  const near = onMachine === null ? await withDotenvAround(env, workingDirectory) : env;
  const settings = onMachine?.settings ?? (project === undefined ? near : ofProject(near, project));
  const { REPO_PATH, BRANCH, HOTPUSH_GIT_HOST: host = "" } = settings;
  const secret = secretToSend(settings);
  const url = urlToSend(address, settings);
  return {
    url: onMachine === null ? webhookUrlOf(url, project ?? null) : url,
    secret,
    host: isGitHost(host) ? host : null,
    directory: REPO_PATH && existsSync(REPO_PATH) ? REPO_PATH : workingDirectory,
    branch: variables.BRANCH.parser.read(BRANCH?.trim() ?? ""),
    server: onMachine?.server ?? null,
  };
}

/**
 * The variables of a project of the server: of the named one, else of that of the directory. PROJECTS_PATH says that
 * another service is meant.
 */
function projectOnMachine(
  env: Environment,
  directory: string,
  name: string | undefined,
): { readonly settings: Environment; readonly server: ServerFiles } | null {
  const part = findServer(env);
  if (part === null || (env.PROJECTS_PATH && env.PROJECTS_PATH !== part.files.projectsPath)) return null;
  const project = chooseProject(part, directory, name);
  if (project === null) return null;
  const usualUrl = `http://127.0.0.1:${part.env.HTTP_PORT || "80"}/webhook/${project.name}`;
  return { settings: { WEBHOOK_URL: usualUrl, ...project.env, ...env }, server: part.files };
}

function ofProject(env: Environment, project: string): Environment {
  const { PROJECTS_PATH } = env;
  if (!PROJECTS_PATH)
    throw new CommandError("PROJECTS_PATH is not set: set it to the directory of projects.");
  const file = join(PROJECTS_PATH, `${project}.env`);
  if (!isProjectName(project) || !existsSync(file))
    throw new CommandError(`There is no project ${project}: no ${file}.`);
  try {
    return { ...env, ...parseEnv(readFileSync(file, "utf8")) };
  } catch (error) {
    throw new CommandError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code}).`);
  }
}

async function withDotenvAround(env: NodeJS.ProcessEnv, directory: string): Promise<Environment> {
  const near = withDotenv(env, directory);
  if (near.WEBHOOK_SECRET || near.WEBHOOK_SECRET_FILE) return near;
  const root = await git(directory, "rev-parse", "--show-toplevel");
  return root === null || root === directory ? near : withDotenv(env, root);
}

/**
 * The secret to sign with, from the variables that the service reads.
 *
 * @throws CommandError if there is none that the service would accept
 */
export function secretToSend(env: Environment): string {
  if (!env.WEBHOOK_SECRET && !env.WEBHOOK_SECRET_FILE) {
    throw new CommandError(
      "There is no WEBHOOK_SECRET: neither in the environment nor in .env here. Go to your project's directory, or write one with: hotpush init",
    );
  }
  const { text, fault } = readSecretText(env, "WEBHOOK_SECRET");
  const wrong = fault ?? secretFault("WEBHOOK_SECRET", text);
  if (wrong !== null) throw new CommandError(wrong);
  return text;
}

function urlToSend(wanted: string | undefined, env: Environment): URL {
  const text = wanted ?? env.WEBHOOK_URL ?? `http://127.0.0.1:${env.WEBHOOK_PORT || "9000"}/webhook`;
  if (!/^https?:\/\//.test(text) || !URL.canParse(text)) {
    throw new CommandError(
      "The address must begin with http:// or https://, such as https://shop.example.org/webhook.",
    );
  }
  const url = new URL(text);
  if (url.pathname === "/") url.pathname = "/webhook";
  return url;
}
