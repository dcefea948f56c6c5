/**
 * The environment of every test, and of the programs that it starts. Importing this file reduces `process.env` to the
 * variables for programs, Docker and the network, and those that control the tests. A `hotpush` that is installed on the
 * machine is not on its PATH. temporary.ts imports it; a test without that one imports it itself.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const kept = [
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LC_\w+|CI)$/,
  // Under sudo, git accepts the person's own checkout because of these.
  /^SUDO_\w+$/,
  /^(?:DOCKER_\w+|XDG_RUNTIME_DIR)$/,
  /^(?:\w+_proxy|SSL_CERT_\w+|NODE_\w+|npm_config_(?:registry|cache|userconfig|globalconfig))$/i,
  /^(?:HOTPUSH_\w+|FUZZ_\w+|TEST_RESULTS)$/,
  // For docker-lab.sh.
  /^(?:LAB|SUITES|MIRROR|LIVE_RESTORE)$/,
];

for (const name of Object.keys(process.env)) {
  if (!kept.some((pattern) => pattern.test(name))) delete process.env[name];
}
process.env.PATH = (process.env.PATH ?? "").split(delimiter).map(withoutHotpush).join(delimiter);

/** @returns the directory, or one with links to all of its programs except `hotpush` */
function withoutHotpush(directory: string): string {
  if (!existsSync(join(directory, "hotpush"))) return directory;
  const links = mkdtempSync(join(tmpdir(), "hotpush-path-"));
  process.once("exit", () => rmSync(links, { recursive: true, force: true }));
  for (const name of readdirSync(directory)) {
    if (name !== "hotpush") symlinkSync(join(directory, name), join(links, name));
  }
  return links;
}
