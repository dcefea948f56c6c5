import { execFileSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { cpus, loadavg, release, tmpdir, totalmem } from "node:os";
import { isInstalled, type Tool, versionOf, webhook, wrk } from "./tools.ts";

/** The machine of the measurements, as pairs of a name and a value. */
export function describeMachine(): readonly (readonly [string, string])[] {
  const [processor] = cpus();
  return [
    ["Date", new Date().toISOString().slice(0, 10)],
    ["Processor", `${processor?.model.trim() ?? "unknown"}, ${cpus().length} cores`],
    ["Memory", `${Math.round(totalmem() / 1024 ** 3)} GiB`],
    ["System", `${systemName()}, Linux ${release()}`],
    ["Disk", `${diskOf(tmpdir())}, for the databases of this bench`],
    ["Node", process.version],
    ["adnanh/webhook", packageText(webhook)],
    ["wrk", packageText(wrk)],
    ["Load before the bench", `${loadBefore.toFixed(2)} (average of 1 min)`],
  ];
}

const [loadBefore = 0] = loadavg();

/** True if other programs were using much of the machine when the bench started. */
export const wasBusy = loadBefore > cpus().length / 4;

function packageText(tool: Tool): string {
  return isInstalled(tool) ? `Debian package ${tool.package} ${versionOf(tool)}` : "not installed";
}

function systemName(): string {
  const name = /^PRETTY_NAME="?([^"\n]+)"?$/m.exec(readFileSync("/etc/os-release", "utf8"));
  return name?.[1] ?? "unknown system";
}

function diskOf(path: string): string {
  const [, line = ""] = execFileSync("df", ["--output=fstype,source", path], { encoding: "utf8" }).split(
    "\n",
  );
  const [type = "unknown", source = "unknown"] = line.trim().split(/\s+/);
  return `${type} on ${source}`;
}
