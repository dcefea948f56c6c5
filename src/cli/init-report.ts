import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { Environment } from "../config/settings.ts";
import { type GitRemote, hasFileModes } from "../init/git-checkout.ts";
import type { GitHost } from "../init/git-host.ts";
import type { Setup } from "../init/plan-setup.ts";
import type { PlannedFile } from "../init/planned-file.ts";
import type { SetupProject } from "../init/project.ts";
import { proxyAdvice } from "../init/proxy-config.ts";
import { systemdUnitName } from "../init/systemd-unit.ts";
import { isLoopback } from "../init/webhook-address.ts";
import { type WebhookForm, webhookForm } from "../init/webhook-form.ts";
import { diffTexts } from "../platform/git.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { secretToSend, send } from "../send/send.ts";
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
  printStates(files);
  await printDifferences(files, env);
}

/** Prints what happens to each file, a line each. */
export function printStates(files: readonly PlannedFile[]): void {
  const width = Math.max(...files.map(({ name }) => name.length));
  for (const { state, name, purpose } of files) {
    print(`${(state === "right" ? "is right" : state).padEnd(8)}  ${name.padEnd(width)}  ${purpose}`);
  }
}

/** Prints the difference of each file that is changed, and an empty line. */
export async function printDifferences(files: readonly PlannedFile[], env: NodeJS.ProcessEnv): Promise<void> {
  const changed = files.filter(({ state, shown }) => state === "changed" && shown !== null);
  for (const file of changed) print(`\n${await changeText(file, env)}`);
  print("");
}

/** Without values that must not be shown: if only those change, no difference is left. */
async function changeText(
  { name, before, text, ...file }: PlannedFile,
  env: NodeJS.ProcessEnv,
): Promise<string> {
  const shown = file.shown ?? ((all: string) => all);
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

/** Where the git host sends to, and the secret that it signs with. */
export interface FormOptions {
  readonly host: GitHost | null;
  readonly remote: GitRemote | null;
  readonly payloadUrl: URL;
  /** null: it cannot be read. */
  readonly secret: string | null;
  /** The file that has it. */
  readonly secretFile: string;
}

/** Prints the form of the git host's webhook, field by field. Only a person at a terminal sees the secret itself. */
export function printWebhookForm({ host, remote, payloadUrl, ...options }: FormOptions): void {
  const inFile = `the value of WEBHOOK_SECRET in ${options.secretFile}`;
  const secret = (process.stdout.isTTY ? options.secret : null) ?? inFile;
  const values = { payloadUrl: publicUrl(payloadUrl), secret };
  const form = webhookForm(host ?? "github", host === null ? null : remote, values);
  const name = host === null ? "your git host (name it with --host)" : form.host;
  print(`\nThe webhook at ${name}:`);
  print(host === null ? "  its repository's settings, Webhooks" : `  ${form.address ?? form.way}`);
  printFields(form, secret, options.secretFile);
  if (host !== null) print(wrapFor(process.stdout, `  ${form.afterwards}`, "  "));
}

/** A loopback address is of no use to a git host. */
function publicUrl(url: URL): string {
  if (!isLoopback(url)) return url.href;
  return `${url.protocol}//<this server>${url.port === "" ? "" : `:${url.port}`}${url.pathname}`;
}

function printFields({ fields, makesSecret, host }: WebhookForm, secret: string, secretFile: string): void {
  const width = Math.max(...fields.map(([label]) => label.length));
  for (const [label, value] of fields) print(fieldLine(label, value, width));
  if (!makesSecret) return;
  const own = fields.find(([, value]) => value === secret)?.[0];
  const note = `  If ${host} makes the ${own} itself, write that to ${secretFile} as WEBHOOK_SECRET.`;
  print(wrapFor(process.stdout, note, "  "));
}

/** A value that would wrap has a line of its own, so that it can be copied. */
function fieldLine(label: string, value: string, width: number): string {
  const line = `  ${label.padEnd(width)}  ${value}`;
  return line.length <= 80 ? line : `  ${label}\n    ${value}`;
}

/** Prints what to do next. If the service answers already, nothing is left to do: the result of a dry run is printed. */
export async function printNextSteps(setup: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  const { proxy, files } = setup;
  if (proxy !== null && proxy.kind !== "none" && proxy.kind !== "new-caddy") {
    print(`\nIn the configuration of ${proxy.service}:`, ...proxyAdvice(proxy).map((line) => `  ${line}`));
  }
  const isUnchanged = files.every(({ state }) => state === "right");
  const settings = { ...readDotenv(setup.project.root), ...env };
  const result = isUnchanged ? await dryRun({ ...setup, settings, ...setup.address }) : null;
  if (result !== null) print(`\n${wrapFor(process.stdout, result)}`);
  else print("\nNext:", `  ${startCommand(setup)}`, "  hotpush send --dry-run");
}

function startCommand({ proxy }: Setup): string {
  if (proxy !== null) return "docker compose up -d";
  return `sudo install -m 644 ${systemdUnitName} /etc/systemd/system/ && sudo systemctl enable --now hotpush`;
}

/** A test push that changes nothing. */
export interface DryRunOptions {
  readonly project: SetupProject;
  readonly payloadUrl: URL;
  readonly host: GitHost | null;
  /** The variables with the secret. */
  readonly settings: Environment;
}

/** @returns what the service answered, or null if it did not answer */
export async function dryRun({ project, payloadUrl, host, settings }: DryRunOptions): Promise<string | null> {
  try {
    const sent = await send({
      url: payloadUrl,
      secret: secretToSend(settings),
      directory: project.root,
      branch: project.branch,
      ...{ host, event: "push", file: null, isDryRun: true, waitMs: 0 },
    });
    return sent.outcome === "unreachable" || sent.outcome === "not-hotpush" ? null : sent.text;
  } catch {
    // Without a secret or a commit there is nothing to send.
    return null;
  }
}

/** The variables of `.env` in `root`. */
export function readDotenv(root: string): NodeJS.Dict<string> {
  return parseEnv(readFileSync(join(root, ".env"), "utf8"));
}
