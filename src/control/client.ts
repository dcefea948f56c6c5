import type { IncomingMessage } from "node:http";
import { openHttp } from "../platform/http-client.ts";
import { openDirectory, shortSocketPath, socketPath } from "./socket-path.ts";

/** The service could not be asked: `message` says where it was looked for and why not, for a person. */
export class NotRunningError extends Error {
  override readonly name = "NotRunningError";
}

/** The service refused what was asked; `message` is its own sentence. */
export class RefusedError extends Error {
  override readonly name = "RefusedError";
}

/**
 * Asks the service whose state is in `statePath`.
 *
 * @returns the JSON object that it answered
 * @throws NotRunningError where it does not run or cannot be reached, RefusedError where it says no
 */
export async function ask<Answer>(
  statePath: string,
  method: "GET" | "POST",
  path: string,
  body?: object,
): Promise<Answer> {
  const response = await send(statePath, method, path, body);
  return JSON.parse(await textOf(response)) as Answer;
}

/** As `ask`, for an answer that goes on: gives its pieces as they come. */
export async function open(
  statePath: string,
  path: string,
  signal?: AbortSignal,
): Promise<AsyncIterable<Buffer>> {
  return await send(statePath, "GET", path, undefined, signal);
}

async function send(
  statePath: string,
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const response = await connect(statePath, method, path, body, signal).catch((error: unknown) => {
    throw unreachable(statePath, error as NodeJS.ErrnoException);
  });
  if ((response.statusCode ?? 500) < 400) return response;
  const { detail } = JSON.parse(await textOf(response)) as { readonly detail: string };
  throw new RefusedError(detail);
}

async function connect(
  statePath: string,
  method: string,
  path: string,
  body?: object,
  signal?: AbortSignal,
): Promise<IncomingMessage> {
  const directory = openDirectory(statePath);
  try {
    const target = { socketPath: shortSocketPath(directory), path };
    return await openHttp(target, { method, signal, ...(body ? { body: JSON.stringify(body) } : {}) });
  } finally {
    directory.close();
  }
}

async function textOf(response: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = [];
  for await (const chunk of response as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks).toString("utf8");
}

function unreachable(statePath: string, error: NodeJS.ErrnoException): Error {
  if (error.name === "AbortError") return error;
  const path = socketPath(statePath);
  switch (error.code) {
    case "ENOENT":
    case "ENOTDIR":
      return new NotRunningError(
        `No Hotpush runs deployments in ${statePath}: there is no ${path}. ${nextSteps}`,
      );
    case "ECONNREFUSED":
      return new NotRunningError(
        `No Hotpush runs deployments in ${statePath}: ${path} is left of one that is gone. ${nextSteps}`,
      );
    case "EACCES":
    case "EPERM":
      return new NotRunningError(
        `${path} is for the user of the service alone. Run this as that user, or as root: sudo hotpush …`,
      );
    case "ECONNRESET":
    case "EPIPE":
      return new NotRunningError(
        "The service stopped, or is busy with other commands. Try again in a moment.",
      );
    default:
      return error;
  }
}

const nextSteps =
  "Start it, or set STATE_PATH to where its state is; where it runs in a container: docker compose exec hotpush hotpush status";
