/**
 * The environment of every test, and of the programs that it starts. Importing this file reduces `process.env` to the
 * variables for programs and the network, and those that control the tests. HOME is an empty directory, no Docker answers,
 * and a `hotpush` that is installed on the machine is not on the PATH. temporary.ts imports it; a test without that one
 * imports it itself.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";

const kept = [
  /^(?:PATH|USER|LOGNAME|SHELL|TERM|TZ|TMPDIR|LANG|LC_\w+|CI)$/,
  // Under sudo, git accepts the person's own checkout because of these.
  /^SUDO_\w+$/,
  /^(?:\w+_proxy|SSL_CERT_\w+|NODE_\w+|npm_config_(?:registry|cache|userconfig|globalconfig))$/i,
  /^(?:HOTPUSH_(?:TEST|E2E|LAB|BENCH)_\w+|FUZZ_\w+|TEST_RESULTS)$/,
  // For docker-lab.sh.
  /^(?:LAB|SUITES|MIRROR|LIVE_RESTORE|IMAGE_STORE)$/,
];

const { HOME: homeOfMachine = "/", ...others } = process.env;

/** How this machine reaches its Docker, for the tests that run on a real engine (test/lab/lab.ts). */
export const dockerOfMachine: NodeJS.ProcessEnv = {
  DOCKER_HOST: undefined,
  DOCKER_CONFIG: join(homeOfMachine, ".docker"),
  ...Object.fromEntries(
    Object.entries(others).filter(([name]) => /^(?:DOCKER_\w+|XDG_RUNTIME_DIR)$/.test(name)),
  ),
};

for (const name of Object.keys(process.env)) {
  if (!kept.some((pattern) => pattern.test(name))) delete process.env[name];
}
const home = mkdtempSync(join(tmpdir(), "hotpush-home-"));
process.once("exit", () => rmSync(home, { recursive: true, force: true }));
process.env.HOME = home;
process.env.DOCKER_HOST = "unix:///hotpush-test/docker.sock";
// npm knows its registry, and has what it has loaded before.
process.env.npm_config_userconfig ||= join(homeOfMachine, ".npmrc");
process.env.npm_config_cache ||= join(homeOfMachine, ".npm");
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
