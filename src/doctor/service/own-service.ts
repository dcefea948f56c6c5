import type { ComposeModel, ComposeService } from "../../platform/compose/model.ts";
import { listContainers } from "../../platform/docker/container.ts";
import { isServing } from "../../platform/docker/health.ts";
import { isInContainer } from "../../platform/docker/mountinfo.ts";
import { runCommand } from "../../platform/run-command.ts";
import type { DoctorContext } from "../context.ts";

/** A service of a compose file, with its name. */
interface NamedService {
  readonly name: string;
  readonly service: ComposeService;
}

/**
 * The service of the compose file that is Hotpush itself: the one that has a webhook secret and Docker's socket. An app that
 * reads the same `.env` has the secret too.
 */
export function hotpushServiceOf({ services }: ComposeModel): NamedService | null {
  const withSecret = Object.entries(services)
    .filter(
      ([, { environment = {} }]) => "WEBHOOK_SECRET" in environment || "WEBHOOK_SECRET_FILE" in environment,
    )
    .map(([name, service]) => ({ name, service }));
  const hasSocket = ({ service: { volumes = [] } }: NamedService) =>
    volumes.some(({ target }) => target.endsWith("/docker.sock"));
  return (
    withSecret.find(hasSocket) ?? withSecret.find(({ name }) => name === "hotpush") ?? withSecret[0] ?? null
  );
}

/** The service in the project's compose file that is Hotpush, or null. */
export async function ownComposeService({ compose }: DoctorContext): Promise<NamedService | null> {
  const answer = await compose();
  return answer.kind === "model" ? hotpushServiceOf(answer.model) : null;
}

/**
 * Finds Hotpush's container: behind a proxy the service has no port on the host, so Docker is asked.
 *
 * @returns null if it is no compose service, or this is not the host; `container` is null if it does not serve
 */
export async function findInCompose(
  context: DoctorContext,
): Promise<{ readonly container: string | null } | null> {
  const [answer, own] = [await context.compose(), await ownComposeService(context)];
  if (answer.kind !== "model" || own === null || isInContainer()) return null;
  const docker = await context.engine();
  if (docker.kind !== "answers") return { container: null };
  const containers = await listContainers(docker.engine, answer.model.name, own.name);
  return { container: containers.find(isServing)?.name ?? null };
}

/** Whether the service runs, on this machine or in its container. */
export async function isServiceRunning(context: DoctorContext): Promise<boolean> {
  return (await context.service()).kind === "hotpush" || Boolean((await findInCompose(context))?.container);
}

/** The units of systemd: one, or one for each process. */
export async function unitNames({ roles }: DoctorContext): Promise<readonly string[]> {
  return (await roles()) === null ? ["hotpush"] : ["hotpush-receive", "hotpush-run"];
}

/** Looks for the units in systemd's files, which are there even if systemd does not run. null: not all are there. */
export async function unitState(context: DoctorContext): Promise<"enabled" | "disabled" | null> {
  const units = (await unitNames(context)).map((name) => `${name}.service`);
  const argv = ["systemctl", "is-enabled", ...units] as const;
  const ending = await runCommand({ argv, env: context.scriptEnv, timeoutMs: 10_000 });
  const states = ending.kind === "exited" ? ending.output.split("\n").filter(Boolean) : [];
  if (states.length < units.length || states.includes("not-found")) return null;
  return states.some((state) => /^(?:disabled|masked|linked|transient|bad)/.test(state))
    ? "disabled"
    : "enabled";
}
