import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { hasFileModes } from "../init/git-checkout.ts";
import type { Setup } from "../init/plan-setup.ts";
import type { PlannedFile } from "../init/planned-file.ts";
import { diffTexts } from "../platform/git.ts";
import { wrapFor } from "../platform/terminal/wrap.ts";
import { print } from "./command.ts";

/** Prints what was found: the project, its remote, and what runs in front of the app. */
export function printProject({ project, proxy, address }: Setup): void {
  const { root, remoteUrl, remote } = project;
  // The URL may have credentials in it; the parsed remote has none.
  const from = remote ? `${remote.hostname}, ${remote.path}` : (remoteUrl ?? "none");
  print(`Project   ${root}`, `Remote    ${from}`, `Runs with ${proxyText(proxy, address.site)}`, "");
}

function proxyText(proxy: Setup["proxy"], site: string | null): string {
  if (proxy === null) return "systemd (there is no compose file)";
  if (proxy.kind === "none") return "compose; no service publishes a port, so Hotpush publishes 9000";
  if (proxy.kind === "new-caddy") return `compose; Caddy takes the place of ${proxy.service} (${site})`;
  return `compose; behind ${proxy.service}, your own proxy`;
}

/** Prints what happens to each file, with the difference for those that are changed. */
export async function printChanges(files: readonly PlannedFile[], env: NodeJS.ProcessEnv): Promise<void> {
  const width = Math.max(...files.map(({ name }) => name.length));
  for (const { state, name, purpose } of files) {
    print(`${(state === "right" ? "is right" : state).padEnd(8)}  ${name.padEnd(width)}  ${purpose}`);
  }
  for (const file of files) if (file.state === "changed") print(`\n${await changeText(file, env)}`);
  print("");
}

/** Without values that must not be shown: if only those change, no difference is left. */
async function changeText(
  { name, before, text, shown = (all) => all }: PlannedFile,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const hasColour = process.stdout.isTTY === true && process.stdout.hasColors();
  const difference = await diffTexts(name, shown(before ?? ""), shown(text), { env, hasColour });
  if (difference === "") return `${name}: a secret in it is replaced.`;
  return (
    difference ?? `${name} would get another text. The difference cannot be shown, because git diff failed.`
  );
}

/** Prints what a person should know, and what only they can do. */
export async function printNotes(setup: Setup): Promise<void> {
  for (const note of [...proxyNotes(setup), ...(await checkoutNotes(setup))]) {
    print(wrapFor(process.stdout, `- ${note}`, "  "));
  }
}

function proxyNotes({ proxy }: Setup): readonly string[] {
  if (proxy?.kind !== "new-caddy") return [];
  const { service, dropped, hasContainerName } = proxy;
  const notes = dropped.map(
    (port) => `Port ${port} of ${service} is no longer published: two containers cannot share it.`,
  );
  if (!hasContainerName) return notes;
  return [
    ...notes,
    `${service} loses its container_name: for a moment of each deployment there are two of it.`,
  ];
}

async function checkoutNotes({ project, proxy, services, machine }: Setup): Promise<readonly string[]> {
  const { root } = project;
  const isBuiltFromRoot = Object.values(services).some(({ build }) => contextOf(build) === root);
  const notes: readonly (readonly [applies: boolean, text: string])[] = [
    [
      !(await hasFileModes(root)),
      "git keeps no execute bits here. Run: git add deploy.sh && git update-index --chmod=+x deploy.sh",
    ],
    [
      isBuiltFromRoot && !isIgnoredByDocker(root),
      ".env, with the secret in it, is in the build context of your image. Add a line .env to .dockerignore.",
    ],
    [
      proxy !== null && machine.isForeignOwner,
      "The owner of the checkout is not the container's user, so what a deployment changes in it will belong to root.",
    ],
  ];
  return notes.flatMap(([applies, text]) => (applies ? [text] : []));
}

function contextOf(build: unknown): unknown {
  return typeof build === "object" && build !== null && "context" in build ? build.context : build;
}

function isIgnoredByDocker(root: string): boolean {
  const path = join(root, ".dockerignore");
  if (!existsSync(path)) return false;
  return /^(?:\*\*?\/)?(?:\.env\*?|\.\*|\*)$/m.test(readFileSync(path, "utf8"));
}
