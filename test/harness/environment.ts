/**
 * The environment of every test: importing this leaves in `process.env`, which tests and the programs that they start
 * inherit, only what finds programs, a Docker and the network, and what steers the tests themselves. A `hotpush` that is
 * installed on the machine is not on its PATH. temporary.ts imports it; a test without that one imports it itself.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const kept = [
  /^(?:PATH|HOME|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LC_\w+|CI)$/,
  // As root by sudo, git takes the checkout for the person's own because of these.
  /^SUDO_\w+$/,
  /^(?:DOCKER_\w+|XDG_RUNTIME_DIR)$/,
  /^(?:\w+_proxy|SSL_CERT_\w+|NODE_\w+|npm_config_(?:registry|cache|userconfig|globalconfig))$/i,
  /^(?:HOTPUSH_\w+|FUZZ_\w+|TEST_RESULTS)$/,
  // Of docker-lab.sh.
  /^(?:LAB|SUITES|MIRROR|LIVE_RESTORE)$/,
];

for (const name of Object.keys(process.env)) {
  if (!kept.some((pattern) => pattern.test(name))) delete process.env[name];
}
process.env.PATH = (process.env.PATH ?? "").split(delimiter).map(withoutHotpush).join(delimiter);

/** @returns the directory, or one with links to all of its programs but `hotpush` */
function withoutHotpush(directory: string): string {
  if (!existsSync(join(directory, "hotpush"))) return directory;
  const links = mkdtempSync(join(tmpdir(), "hotpush-path-"));
  process.once("exit", () => rmSync(links, { recursive: true, force: true }));
  for (const name of readdirSync(directory)) {
    if (name !== "hotpush") symlinkSync(join(directory, name), join(links, name));
  }
  return links;
}
