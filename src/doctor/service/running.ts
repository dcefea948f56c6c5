import { basename, dirname, join } from "node:path";
import { binDirectory } from "../../runner/environment.ts";
import { type Check, ok, problem, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { type Fix, quote } from "../fix.ts";
import type { Settings } from "../settings.ts";
import { findInCompose, ownComposeService, readUnit } from "./own-service.ts";

/** If nothing listens, the next catch-up finds a push; nothing finds the first push of a new project. */
export const runningCheck: Check = {
  id: "running",
  group: "Service",
  subject: "the service runs",
  async probe(context) {
    const service = await context.service();
    if (service.kind === "hotpush") return ok(`it answers at ${service.url}`);
    const inCompose = await findInCompose(context);
    if (inCompose?.kind === "serving") return ok(`in the container ${inCompose.container}`);
    const text = `Hotpush does not answer on port ${context.port}: nobody receives a push.`;
    if (context.configFaults.length > 0) return problem(`${text} Fix its configuration first.`);
    return problem(text, await startCommand(context));
  },
};

/** The service has the secret that it read when it started. */
export const secretInUseCheck: Check = {
  id: "secret-in-use",
  group: "Service",
  subject: "the running service has the secret that is set here",
  async probe(context) {
    const service = await context.service();
    if (service.kind !== "hotpush") return skip("no service answers at the port on this machine");
    if (service.acceptsSecret === null) return skip("there is no secret to try");
    if (service.acceptsSecret) return ok("it has accepted a signed ping");
    const text =
      "The running service refuses a ping signed with the secret that is set here: it was started with another one. Restart it.";
    return problem(text, await startCommand(context));
  },
};

/** Starts or restarts the service in the way that this machine is set up for. */
async function startCommand(context: DoctorContext): Promise<Fix> {
  if ((await readUnit(context)).kind === "unit") return { command: "systemctl restart hotpush" };
  const own = await ownComposeService(context);
  if (own !== null) {
    return {
      command: `docker compose --project-directory ${quote(context.repoPath)} up --detach ${own.name}`,
    };
  }
  return { command: `${variablesCommand(context.settings)}${quote(join(binDirectory, "hotpush"))}` };
}

/** The service itself reads only `.env` in its working directory. */
function variablesCommand({ file, isFileThere }: Settings): string {
  if (!isFileThere) return "";
  return basename(file) === ".env" ? `cd ${quote(dirname(file))} && ` : `set -a && . ${quote(file)} && `;
}
