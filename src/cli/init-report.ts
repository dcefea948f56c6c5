import type { Environment } from "../config/settings.ts";
import type { GitRemote } from "../init/git-checkout.ts";
import type { GitHost } from "../init/git-host.ts";
import type { PlannedFile } from "../init/planned-file.ts";
import type { SetupProject } from "../init/project.ts";
import { isLoopback } from "../init/webhook-address.ts";
import { type WebhookForm, webhookForm } from "../init/webhook-form.ts";
import { diffTexts } from "../platform/git.ts";
import { wrapFor } from "../platform/terminal/layout.ts";
import { type SendRequest, secretToSend, send } from "../send/send.ts";
import { print } from "./command.ts";

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

/** A test push that changes nothing. */
export interface DryRunOptions {
  readonly project: SetupProject;
  readonly payloadUrl: URL;
  readonly host: GitHost | null;
  /** The variables with the secret. */
  readonly settings: Environment;
  readonly server: SendRequest["server"];
}

/** @returns what the service answered, or null if it did not answer */
export async function dryRun({
  project,
  payloadUrl,
  host,
  settings,
  server,
}: DryRunOptions): Promise<string | null> {
  try {
    const sent = await send({
      url: payloadUrl,
      secret: secretToSend(settings),
      directory: project.root,
      branch: project.branch,
      ...{ host, event: "push", file: null, isDryRun: true, waitMs: 0, server },
    });
    return sent.outcome === "unreachable" || sent.outcome === "not-hotpush" ? null : sent.text;
  } catch {
    // Without a secret or a commit there is nothing to send.
    return null;
  }
}
