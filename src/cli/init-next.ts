import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { Setup } from "../init/plan-setup.ts";
import { proxyAdvice } from "../init/proxy-config.ts";
import { systemdUnitName } from "../init/systemd-unit.ts";
import { isLoopback } from "../init/webhook-address.ts";
import { type WebhookForm, webhookForm } from "../init/webhook-form.ts";
import { wrapFor } from "../platform/terminal/wrap.ts";
import { send } from "../send/send.ts";
import { secretToSend } from "../send/settings.ts";
import { say } from "./say.ts";

/** Prints the form of the project's git host, field by field. The secret itself is shown to a person at a terminal only. */
export function tellForm({ project, host, address }: Setup): void {
  const secret = process.stdout.isTTY ? (secretOf(project.root) ?? inDotenv) : inDotenv;
  const payloadUrl = publicUrl(address.payloadUrl);
  const form = webhookForm(host ?? "github", host === null ? null : project.remote, { payloadUrl, secret });
  const name = host === null ? "your git host (say which with --host)" : form.host;
  say(`\nThe webhook at ${name}:`);
  say(host === null ? "  its repository's settings, Webhooks" : `  ${form.address ?? form.way}`);
  tellFields(form, secret);
  if (host !== null) say(wrapFor(process.stdout, `  ${form.afterwards}`, "  "));
}

const inDotenv = "the value of WEBHOOK_SECRET in .env";

function tellFields({ fields, makesSecret, host }: WebhookForm, secret: string): void {
  const width = Math.max(...fields.map(([label]) => label.length));
  for (const [label, value] of fields) say(fieldLine(label, value, width));
  const own = fields.find(([, value]) => value === secret)?.[0];
  if (makesSecret) {
    say(
      wrapFor(
        process.stdout,
        `  If ${host} makes the ${own} itself, write that to .env as WEBHOOK_SECRET.`,
        "  ",
      ),
    );
  }
}

/** A value that would wrap has a line of its own, so that it can be copied. */
function fieldLine(label: string, value: string, width: number): string {
  const line = `  ${label.padEnd(width)}  ${value}`;
  return line.length <= 80 ? line : `  ${label}\n    ${value}`;
}

/** An address of this machine is of no use to a git host. */
function publicUrl(url: URL): string {
  if (!isLoopback(url)) return url.href;
  return `${url.protocol}//<this server>${url.port === "" ? "" : `:${url.port}`}${url.pathname}`;
}

/**
 * Says what to do next. Where the service answers already, that is nothing: a signed dry run shows it.
 *
 * @returns the exit code
 */
export async function tellNext(setup: Setup, env: NodeJS.ProcessEnv): Promise<number> {
  const { proxy, files } = setup;
  if (proxy !== null && proxy.kind !== "none" && proxy.kind !== "new-caddy") {
    say(`\nIn the configuration of ${proxy.service}:`);
    for (const line of proxyAdvice(proxy)) say(`  ${line}`);
  }
  const isUnchanged = files.every(({ state }) => state === "right");
  if (isUnchanged && (await tellDryRun(setup, env))) return 0;
  say("\nNext:");
  for (const command of nextCommands(setup)) say(`  ${command}`);
  return 0;
}

function nextCommands({ proxy }: Setup): readonly string[] {
  const start =
    proxy === null
      ? `sudo install -m 644 ${systemdUnitName} /etc/systemd/system/ && sudo systemctl enable --now hotpush`
      : "docker compose up -d";
  return [start, "npx hotpush send --dry-run"];
}

/** @returns whether the service was there to say something */
async function tellDryRun({ project, address, host }: Setup, env: NodeJS.ProcessEnv): Promise<boolean> {
  const signing = secretToSend({ ...readDotenv(project.root), ...env });
  if ("fault" in signing) return false;
  const request = {
    url: address.payloadUrl,
    secret: signing.secret,
    directory: project.root,
    host,
    branch: project.branch,
  };
  try {
    const sent = await send({ ...request, event: "push", file: null, isDryRun: true, waitMs: 0 });
    if (sent.outcome === "unreachable" || sent.outcome === "not-hotpush") return false;
    say(`\n${wrapFor(process.stdout, sent.text)}`);
    return true;
  } catch {
    // Without a commit there is nothing to make a push of.
    return false;
  }
}

function secretOf(root: string): string | null {
  return readDotenv(root).WEBHOOK_SECRET ?? null;
}

function readDotenv(root: string): NodeJS.Dict<string> {
  return parseEnv(readFileSync(join(root, ".env"), "utf8"));
}
