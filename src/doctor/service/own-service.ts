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
  const withSecret = Object.entries(services).filter(([, { environment }]) =>
    Object.keys(environment ?? {}).some((name) => /^WEBHOOK_SECRET(?:_FILE)?$/.test(name)),
  );
  const [name, service] =
    withSecret.find(([, { volumes = [] }]) =>
      volumes.some(({ target }) => target.endsWith("/docker.sock")),
    ) ??
    withSecret.find(([name]) => name === "hotpush") ??
    withSecret[0] ??
    [];
  return name === undefined || service === undefined ? null : { name, service };
}

/** The service in the project's compose file that is Hotpush, or null. */
export async function ownComposeService({ compose }: DoctorContext): Promise<NamedService | null> {
  const answer = await compose();
  return answer.kind === "model" ? hotpushServiceOf(answer.model) : null;
}

/** The state of Hotpush's container, if the compose file has one and this is the host. */
type OwnComposeState =
  | { readonly kind: "serving"; readonly container: string }
  | { readonly kind: "not-serving" };

/** Behind a proxy the service has no port on the host, so Docker knows. @returns null if it is no compose service */
export async function findInCompose(context: DoctorContext): Promise<OwnComposeState | null> {
  const [answer, own] = [await context.compose(), await ownComposeService(context)];
  if (answer.kind !== "model" || own === null || isInContainer()) return null;
  const docker = await context.engine();
  if (docker.kind !== "answers") return { kind: "not-serving" };
  const serving = (await listContainers(docker.engine, answer.model.name, own.name)).find(isServing);
  return serving ? { kind: "serving", container: serving.name } : { kind: "not-serving" };
}

/** Whether the service runs, on this machine or in its container. */
export async function isServiceRunning(context: DoctorContext): Promise<boolean> {
  if ((await context.service()).kind === "hotpush") return true;
  return (await findInCompose(context))?.kind === "serving";
}

/** The systemd unit of the service. */
type SystemdUnit = { readonly kind: "unit"; readonly isEnabled: boolean } | { readonly kind: "none" };

/** Looks for the unit `hotpush.service` in systemd's files, which are there even if systemd does not run. */
export async function readUnit({ scriptEnv: env }: DoctorContext): Promise<SystemdUnit> {
  const argv = ["systemctl", "is-enabled", "hotpush.service"] as const;
  const ending = await runCommand({ argv, env, timeoutMs: 10_000 });
  const state = ending.kind === "exited" ? ending.output.trim() : "";
  if (ending.kind !== "exited" || state === "" || state === "not-found") return { kind: "none" };
  return { kind: "unit", isEnabled: ending.code === 0 };
}
