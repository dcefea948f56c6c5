import { readdirSync, statSync } from "node:fs";
import { extname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { readVersion } from "../../version.ts";
import { type Check, judge, ok, skipped, warning } from "../check.ts";
import { listeningProcess } from "./listening-process.ts";
import { readUnit } from "./unit.ts";

const root = fileURLToPath(new URL("../../..", import.meta.url));
const code = fileURLToPath(new URL("../..", import.meta.url));
const ownMain = join(code, `main${extname(import.meta.filename)}`);

/** The start of a process is known to the second, more or less. */
const slackMs = 2_000;

/** An update of the files changes nothing in a process that runs. */
export const versionCheck: Check = {
  id: "version",
  group: "Service",
  subject: "what runs is the version that is installed",
  async look(scene) {
    if ((await scene.service()).kind !== "hotpush") return skipped("the service does not run");
    const running = listeningProcess(scene.port);
    if (running === null) {
      return skipped("the service is in a container or of another user: run this there, as that user");
    }
    const main = running.argv.map((word) => resolve(running.directory, word)).find(isMain);
    // Docker's proxy for a published port, for example: to end that would help nobody.
    if (main === undefined) return skipped("the service is in a container: run this there");
    const unit = await readUnit(scene.scriptEnv);
    const restart = unit.kind === "unit" ? "systemctl restart hotpush" : `kill ${running.pid}`;
    const again = unit.kind === "unit" ? "" : " Then start it as it was started before.";
    if (main !== ownMain) {
      return judge([warning(`The service runs from ${main}, but this is ${root}.`)], "");
    }
    const changedAtMs = newestChangeMs(code);
    const text = `The files in ${root} were changed after the service (process ${running.pid}) was started: it runs the earlier version.${again}`;
    if (changedAtMs > running.startedAtMs + slackMs) return judge([warning(text, { command: restart })], "");
    return ok(`process ${running.pid} runs ${readVersion()}`);
  },
};

function isMain(path: string): boolean {
  return /\/main\.[jt]s$/.test(path);
}

function newestChangeMs(directory: string): number {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  return Math.max(...files.map(({ parentPath, name }) => statSync(join(parentPath, name)).ctimeMs));
}
