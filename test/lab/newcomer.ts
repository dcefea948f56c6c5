import "../harness/environment.ts";
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cp, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";
import { githubPush } from "../harness/delivery.ts";

const root = join(import.meta.dirname, "../..");
const run = promisify(execFile);

/** The commands in the first block of the README after a text in it, by default those that set a project up. */
export async function readmeCommands(after = "## Set it up"): Promise<readonly string[]> {
  const readme = await readFile(join(root, "README.md"), "utf8");
  const from = readme.indexOf(after);
  assert.notEqual(from, -1, `README.md does not say: ${after}`);
  const block = /```sh\n(.*?)```/s.exec(readme.slice(from))?.[1] ?? "";
  return block.split("\n").filter((line) => line.trim() !== "");
}

export interface Form {
  readonly payloadUrl: string;
  readonly secret: string;
}

/** The values that a person copies from the printed form to the git host. */
export function readForm(printed: string): Form {
  const [, secret = ""] = /^ +Secret +([0-9a-f]{64})\r?$/m.exec(printed) ?? [];
  assert.notEqual(secret, "", printed);
  const [, shown = ""] = /^ +Payload URL +(\S.*?)\r?$/m.exec(printed) ?? [];
  const payloadUrl = shown.replace("<this server>", "127.0.0.1");
  return { payloadUrl, secret };
}

/** A bare repository with examples/compose's app and a typical compose file. */
export async function makeRemote(directory: string, port: string): Promise<void> {
  const seed = join(directory, "developer");
  await cp(join(root, "examples/compose/app"), join(seed, "app"), { recursive: true });
  const compose = `services:\n  app:\n    build: app\n    restart: unless-stopped\n    ports:\n      - "${port}:8080"\n`;
  await writeFile(join(seed, "compose.yaml"), compose);
  await git(directory, "init", "--quiet", "--bare", "--initial-branch=main", "remote.git");
  await git(seed, "init", "--quiet", "--initial-branch=main");
  await git(seed, "remote", "add", "origin", "../remote.git");
  await commitAndPush(seed, "Version 1");
}

/** Pushes as a developer, with a webhook as in the printed form. */
export async function pushVersion(
  directory: string,
  version: number,
  { payloadUrl, secret }: Form,
): Promise<void> {
  const clone = join(directory, "../developer");
  const server = join(clone, "app/server.js");
  await writeFile(server, (await readFile(server, "utf8")).replace(/version \d+/, `version ${version}`));
  const before = await git(clone, "rev-parse", "HEAD");
  const after = await commitAndPush(clone, `Version ${version}`);
  const { headers, body } = githubPush({ before, after }, secret);
  const response = await fetch(payloadUrl, { method: "POST", headers, body: body as string });
  assert.equal(response.status, 202, await response.text());
}

async function commitAndPush(clone: string, message: string): Promise<string> {
  await git(clone, "add", "--all");
  await git(clone, "commit", "--quiet", "--message", message);
  await git(clone, "push", "--quiet", "origin", "main");
  return git(clone, "rev-parse", "HEAD");
}

export async function git(directory: string, ...args: readonly string[]): Promise<string> {
  const ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com"];
  return (await run("git", ["-C", directory, ...ada, ...args])).stdout.trim();
}
