import { basename, dirname, join } from "node:path";
import { binDirectory } from "../../runner/environment.ts";
import { type Check, type Cure, judge, ok, problem, skipped } from "../check.ts";
import { quote } from "../quote.ts";
import type { Scene } from "../scene.ts";
import type { Settings } from "../settings/settings.ts";
import { findInCompose } from "./in-compose.ts";
import { hotpushServiceOf } from "./own-compose-service.ts";
import { readUnit } from "./unit.ts";

/** A push that comes while nothing listens is found later by the next catch-up, or never, if it is the first. */
export const runningCheck: Check = {
  id: "running",
  group: "Service",
  subject: "the service runs",
  async look(scene) {
    const service = await scene.service();
    if (service.kind === "hotpush") return ok(`it answers at ${service.url}`);
    const inCompose = await findInCompose(scene);
    if (inCompose?.kind === "serving") return ok(`in the container ${inCompose.container}`);
    const text = `Hotpush does not answer on port ${scene.port}: nobody receives a push.`;
    if (scene.configFaults.length > 0) return judge([problem(`${text} Mend its configuration first.`)], "");
    return judge([problem(text, await startCommand(scene))], "");
  },
};

/** A service that was not started again since has the secret that it read then. */
export const secretInUseCheck: Check = {
  id: "secret-in-use",
  group: "Service",
  subject: "the running service has the secret that is set here",
  async look(scene) {
    const service = await scene.service();
    if (service.kind !== "hotpush") return skipped("there is no service at a port of this machine");
    if (service.acceptsSecret === null) return skipped("there is no secret that could be tried");
    if (service.acceptsSecret) return ok("it has accepted a signed ping");
    const text =
      "The running service refuses what is signed with the secret that is set here: it was started with another one. Start it again.";
    return judge([problem(text, await startCommand(scene))], "");
  },
};

/** What starts the service, or starts it again, in the way in which this machine is set up. */
async function startCommand(scene: Scene): Promise<Cure> {
  const { settings, repoPath, scriptEnv } = scene;
  if ((await readUnit(scriptEnv)).kind === "unit") return { command: "systemctl restart hotpush" };
  const compose = await scene.compose();
  const own = compose.kind === "model" ? hotpushServiceOf(compose.model) : null;
  if (own !== null) {
    return { command: `docker compose --project-directory ${quote(repoPath)} up --detach ${own.name}` };
  }
  return { command: `${variablesCommand(settings)}${quote(join(binDirectory, "hotpush"))}` };
}

/** The service reads `.env` in its working directory by itself, and no other file. */
function variablesCommand({ file, isFileThere }: Settings): string {
  if (!isFileThere) return "";
  return basename(file) === ".env" ? `cd ${quote(dirname(file))} && ` : `set -a && . ${quote(file)} && `;
}
