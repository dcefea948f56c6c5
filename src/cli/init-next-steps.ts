import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { Setup } from "../init/plan-setup.ts";
import { proxyAdvice } from "../init/proxy-config.ts";
import { systemdUnitName } from "../init/systemd-unit.ts";
import { isLoopback } from "../init/webhook-address.ts";
import { type WebhookForm, webhookForm } from "../init/webhook-form.ts";
import { wrapFor } from "../platform/terminal/wrap.ts";
import { secretToSend, send } from "../send/send.ts";
import { print } from "./command.ts";

/** Prints the form of the git host's webhook, field by field. Only a person at a terminal sees the secret itself. */
export function printWebhookForm({ project, host, address }: Setup): void {
  const inDotenv = "the value of WEBHOOK_SECRET in .env";
  const secret = (process.stdout.isTTY ? readDotenv(project.root).WEBHOOK_SECRET : null) ?? inDotenv;
  const payloadUrl = publicUrl(address.payloadUrl);
  const form = webhookForm(host ?? "github", host === null ? null : project.remote, { payloadUrl, secret });
  const name = host === null ? "your git host (name it with --host)" : form.host;
  print(`\nThe webhook at ${name}:`);
  print(host === null ? "  its repository's settings, Webhooks" : `  ${form.address ?? form.way}`);
  printFields(form, secret);
  if (host !== null) print(wrapFor(process.stdout, `  ${form.afterwards}`, "  "));
}

/** A loopback address is of no use to a git host. */
function publicUrl(url: URL): string {
  if (!isLoopback(url)) return url.href;
  return `${url.protocol}//<this server>${url.port === "" ? "" : `:${url.port}`}${url.pathname}`;
}

function printFields({ fields, makesSecret, host }: WebhookForm, secret: string): void {
  const width = Math.max(...fields.map(([label]) => label.length));
  for (const [label, value] of fields) print(fieldLine(label, value, width));
  if (!makesSecret) return;
  const own = fields.find(([, value]) => value === secret)?.[0];
  const note = `  If ${host} makes the ${own} itself, write that to .env as WEBHOOK_SECRET.`;
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
  const result = isUnchanged ? await dryRun(setup, env) : null;
  if (result !== null) print(`\n${wrapFor(process.stdout, result)}`);
  else print("\nNext:", `  ${startCommand(setup)}`, "  npx hotpush send --dry-run");
}

function startCommand({ proxy }: Setup): string {
  if (proxy !== null) return "docker compose up -d";
  return `sudo install -m 644 ${systemdUnitName} /etc/systemd/system/ && sudo systemctl enable --now hotpush`;
}

/** @returns what the service answered, or null if it did not answer */
async function dryRun({ project, address, host }: Setup, env: NodeJS.ProcessEnv): Promise<string | null> {
  try {
    const sent = await send({
      url: address.payloadUrl,
      secret: secretToSend({ ...readDotenv(project.root), ...env }),
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

function readDotenv(root: string): NodeJS.Dict<string> {
  return parseEnv(readFileSync(join(root, ".env"), "utf8"));
}
