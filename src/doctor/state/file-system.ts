import { statfsSync } from "node:fs";
import { variables } from "../../config.ts";
import { type Check, type Fault, judge, problem, skipped } from "../check.ts";
import { isInContainer } from "../in-container.ts";
import { quote } from "../quote.ts";
import type { Scene } from "../scene.ts";
import { stateIsElsewhere } from "../service/in-compose.ts";
import { nearestThere } from "./nearest-there.ts";

/** By the numbers of statfs(2): where SQLite's locks do not hold, and where nothing outlives a restart. */
const unfit: ReadonlyMap<number, { readonly name: string; readonly reason: string }> = new Map([
  [0x6969, { name: "NFS", reason: "locks do not hold there, so two deployments could run at once" }],
  [0xff534d42, { name: "CIFS", reason: "locks do not hold there, so two deployments could run at once" }],
  [0xfe534d42, { name: "SMB", reason: "locks do not hold there, so two deployments could run at once" }],
  [0x01021994, { name: "a tmpfs", reason: "a reboot takes every push that was accepted with it" }],
  [0x858458f6, { name: "a ramfs", reason: "a reboot takes every push that was accepted with it" }],
]);
const overlay = 0x794c7630;

/** SQLite needs locks that hold, and a promise to a git host needs a disk. */
export const stateFileSystemCheck: Check = {
  id: "state-file-system",
  group: "Disk",
  subject: "the state is on a local disk that outlives a restart",
  async look(scene) {
    const elsewhere = await stateIsElsewhere(scene);
    if (elsewhere !== null) return skipped(elsewhere);
    const fault = faultOf(scene);
    return judge(fault === null ? [] : [fault], "a local disk");
  },
};

function faultOf({ statePath, settings }: Scene): Fault | null {
  const type = typeAt(statePath);
  const found = unfit.get(type);
  if (type === overlay && isInContainer()) {
    const text = `${statePath} is in the container's own layers, which go when it is replaced. In the compose file, give Hotpush a volume:`;
    return problem(text, { change: `volumes: - hotpush:${statePath}` });
  }
  if (!found) return null;
  const places = [variables.STATE_PATH.fallback(settings.env), "/var/lib/hotpush"];
  const better = places.find((path) => !unfit.has(typeAt(path)));
  const text = `${statePath} is on ${found.name}: ${found.reason}. Put it on a disk of this machine.`;
  return problem(text, better === undefined ? {} : moveTo(better, settings));
}

function moveTo(path: string, settings: Scene["settings"]) {
  const { command, change } = settings.set("STATE_PATH", quote(path));
  return change === undefined ? { command: `mkdir -p ${quote(path)} && ${command}` } : { change };
}

/** The type of the file system that holds `path`, or will hold it. */
function typeAt(path: string): number {
  return statfsSync(nearestThere(path)).type;
}
