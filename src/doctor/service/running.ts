import { readdirSync, statSync } from "node:fs";
import { basename, dirname, extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { listeningProcess } from "../../platform/listener.ts";
import { binDirectory } from "../../runner/environment.ts";
import { readVersion } from "../../version.ts";
import { type CheckFinding, ok, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { doesReceiveAnswer } from "../projects/inbox.ts";
import type { Settings } from "../settings.ts";
import { findInCompose, ownComposeService, unitNames, unitState } from "./own-service.ts";

/** If nothing listens, the next catch-up finds a push; nothing finds the first push of a new project. */
export async function checkRunning(context: DoctorContext): Promise<CheckFinding> {
  const service = await context.service();
  if (service.kind === "hotpush") return ok(`it answers at ${service.url}`);
  const inCompose = await findInCompose(context);
  if (inCompose?.container) return ok(`in the container ${inCompose.container}`);
  if (await doesReceiveAnswer(context)) return ok("receive answers on the socket of its inbox");
  const text = `Hotpush does not answer on port ${context.port}: nobody receives a push.`;
  if (context.configFaults.length > 0) return problem(`${text} Fix its configuration first.`);
  return problem(text, await startCommand(context));
}

/** The service has the secret that it read when it started. */
export async function checkSecretInUse(context: DoctorContext): Promise<CheckFinding> {
  const service = await context.service();
  if (service.kind !== "hotpush") return skip("no service answers at the port on this machine");
  if (service.acceptsSecret === null) return skip("there is no secret to try");
  if (service.acceptsSecret) return ok("it has accepted a signed ping");
  const text =
    "The running service refuses a ping signed with the secret that is set here: it was started with another one. Restart it.";
  return problem(text, await startCommand(context));
}

/** Starts or restarts the service in the way that this machine is set up for. */
async function startCommand(context: DoctorContext): Promise<string> {
  if ((await unitState(context)) !== null) return restartCommand(context);
  const own = await ownComposeService(context);
  const compose = `docker compose --project-directory ${quote(context.repoPath)} up --detach`;
  if (own !== null) return `${compose} ${own.name}`;
  return `${variablesCommand(context.settings)}${quote(join(binDirectory, "hotpush"))}`;
}

async function restartCommand(context: DoctorContext): Promise<string> {
  return `systemctl restart ${(await unitNames(context)).join(" ")}`;
}

/** The service itself reads only `.env` in its working directory. */
function variablesCommand({ file, isFileThere }: Settings): string {
  if (!isFileThere) return "";
  return basename(file) === ".env" ? `cd ${quote(dirname(file))} && ` : `set -a && . ${quote(file)} && `;
}

const root = fileURLToPath(new URL("../../..", import.meta.url));
const code = fileURLToPath(new URL("../..", import.meta.url));
const ownMain = join(code, `main${extname(import.meta.filename)}`);

/** The start of a process is known to about a second. */
const slackMs = 2_000;

/** An update of the files does not change a process that runs. */
export async function checkVersion(context: DoctorContext): Promise<CheckFinding> {
  if ((await context.service()).kind !== "hotpush") return skip("the service does not run");
  const running = listeningProcess(context.port);
  if (running === null) {
    return skip("the service is in a container or of another user: run this there, as that user");
  }
  const main = running.argv.map((word) => resolve(running.directory, word)).find(isMain);
  // Docker's proxy for a published port, for example: killing that would not help.
  if (main === undefined) return skip("the service is in a container: run this there");
  if (main !== ownMain) return warning(`The service runs from ${main}, but this is ${root}.`);
  if (newestChangeMs(code) <= running.startedAtMs + slackMs) {
    return ok(`process ${running.pid} runs ${readVersion()}`);
  }
  const hasUnit = (await unitState(context)) !== null;
  const again = hasUnit ? "" : " Then start it as you started it before.";
  const text = `The files in ${root} were changed after the service (process ${running.pid}) was started: it runs the earlier version.${again}`;
  return warning(text, hasUnit ? await restartCommand(context) : `kill ${running.pid}`);
}

function isMain(path: string): boolean {
  return /\/main\.[jt]s$/.test(path);
}

function newestChangeMs(directory: string): number {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Math.max(...files.map(({ parentPath, name }) => statSync(join(parentPath, name)).ctimeMs));
}
