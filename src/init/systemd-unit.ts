import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ownRoot } from "./own-image.ts";

export const systemdUnitName = "hotpush.service";

/** examples/systemd/hotpush.service with the user and the paths of this machine. */
export function systemdUnit(root: string): string {
  const program = process.argv[1] ?? "";
  const example = readFileSync(join(ownRoot, "examples/systemd/hotpush.service"), "utf8");
  const values: Readonly<Record<string, string>> = {
    User: String(statSync(root).uid),
    WorkingDirectory: escaped(root),
    EnvironmentFile: escaped(join(root, ".env")),
    ExecStart: `${quoted(process.execPath)} ${flagsIn(example)} ${quoted(program)}`,
  };
  const unit = Object.entries(values).reduce(
    (text, [name, value]) => text.replace(new RegExp(`^${name}=.*$`, "m"), () => `${name}=${value}`),
    example,
  );
  const head = `# Written by \`hotpush init\`. Install it: sudo install -m 644 ${systemdUnitName} /etc/systemd/system/\n`;
  return unit.replace(/^(?:#.*\n)+/, head).replace(/^Documentation=.*\n/m, "");
}

/** The flags of Node, between the two paths. */
function flagsIn(example: string): string {
  return /^ExecStart=\S+ (.*) \S+$/m.exec(example)?.[1] ?? "";
}

/** In a unit, `%` starts a specifier. */
function escaped(path: string): string {
  return path.replaceAll("%", "%%");
}

function quoted(path: string): string {
  return `"${escaped(path).replaceAll('"', '\\"')}"`;
}
