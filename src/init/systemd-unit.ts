import { readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { ownRoot } from "./own-image.ts";
import { SetupError } from "./setup-error.ts";

export const systemdUnitName = "hotpush.service";

/**
 * examples/systemd/hotpush.service with this machine's user and paths in it.
 *
 * @throws SetupError where this Hotpush is in a cache that may be emptied any day
 */
export function systemdUnit(root: string): string {
  const program = process.argv[1] ?? "";
  if (/\/_npx\//.test(program)) {
    throw new SetupError(
      "This project has no compose file, so Hotpush runs as a service of this machine, and has to be installed to stay: npm install --global hotpush, then: hotpush init",
    );
  }
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

/** What stands between the two paths. */
function flagsIn(example: string): string {
  return /^ExecStart=\S+ (.*) \S+$/m.exec(example)?.[1] ?? "";
}

/** systemd takes `%` for the start of a specifier. */
function escaped(path: string): string {
  return path.replaceAll("%", "%%");
}

function quoted(path: string): string {
  return `"${escaped(path).replaceAll('"', '\\"')}"`;
}
