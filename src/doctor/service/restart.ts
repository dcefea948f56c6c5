import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { isInContainer } from "../../platform/docker/mountinfo.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";
import { type CheckFinding, ok, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { ownComposeService, unitNames, unitState } from "./own-service.ts";

/** After a reboot nobody is there to start it. */
export async function checkRestart(context: DoctorContext): Promise<CheckFinding> {
  const own = await ownComposeService(context);
  if (own !== null) {
    if (survivesReboot(own.service.restart)) return ok(`restart: ${own.service.restart}`);
    const text = `The compose service ${own.name} has no restart policy that survives a crash and a reboot.`;
    return problem(text, { change: `services.${own.name}.restart: unless-stopped` });
  }
  const unit = await unitState(context);
  if (unit === "enabled") return ok("the systemd unit is enabled");
  if (unit === "disabled") {
    const text = "systemd does not start Hotpush after a reboot.";
    return problem(text, `systemctl enable ${(await unitNames(context)).join(" ")}`);
  }
  if (isInContainer()) return await checkContainer(context);
  const text = "No systemd unit and no compose service starts Hotpush again after a reboot.";
  return warning(text, installUnits(await unitNames(context)));
}

interface Inspected {
  readonly HostConfig?: { readonly RestartPolicy?: { readonly Name?: string } };
}

/** Asks Docker about the container that this process runs in. */
async function checkContainer({ engine }: DoctorContext): Promise<CheckFinding> {
  const answer = await engine();
  const own = answer.kind === "answers" ? await findOwnContainer(answer.engine) : null;
  if (answer.kind !== "answers" || own === null) return skip("Docker cannot be asked about this container");
  const inspected: Inspected = JSON.parse((await answer.engine.get(`/containers/${own.id}/json`)).toString());
  if (survivesReboot(inspected.HostConfig?.RestartPolicy?.Name)) return ok("Docker restarts the container");
  const text = "This container has no restart policy that survives a crash and a reboot. On the host:";
  return problem(text, `docker update --restart unless-stopped ${own.id.slice(0, 12)}`);
}

function survivesReboot(policy: string | undefined): boolean {
  return policy === "always" || policy === "unless-stopped";
}

function installUnits(names: readonly string[]): string {
  const examples = fileURLToPath(new URL("../../../examples/systemd/", import.meta.url));
  const copies = names.map((name) => {
    const file = `${name}.service`;
    return `cp ${quote(join(examples, file))} ${join("/etc/systemd/system", file)}`;
  });
  return `${copies.join(" && ")} && systemctl enable ${names.join(" ")}`;
}
