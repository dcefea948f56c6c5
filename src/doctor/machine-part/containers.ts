import { machineServices, servicesOf } from "../../config/machine-part.ts";
import { readVersion } from "../../version.ts";
import { type CheckFinding, type Fault, ok, okUnless, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import type { MachineContainer } from "./probe-machine-part.ts";

type Machine = Pick<DoctorContext, "machineContainers" | "machinePart">;

/** Without one of its containers no push is deployed, or no site answers. */
export async function checkMachineContainers(context: Machine): Promise<CheckFinding> {
  const containers = await context.machineContainers();
  if (containers === null) return skip("Docker cannot be asked");
  const services = servicesOf(context.machinePart?.env ?? {});
  const faults = services.flatMap((service) => faultsOf(service, containers.get(service), context));
  return okUnless(faults, `${services.join(", ")} are up, and start again after a reboot`);
}

function faultsOf(
  service: string,
  container: MachineContainer | undefined,
  context: Machine,
): readonly Fault[] {
  if (container?.State.Status !== "running")
    return [problem(`${service} does not run (${container?.State.Status ?? "no container"}).`, up(context))];
  const { State, HostConfig } = container;
  const policy = HostConfig.RestartPolicy?.Name ?? "no";
  const text = `${service} does not start again after a reboot (its restart policy is ${policy}).`;
  return [
    ...(State.Health?.Status === "unhealthy" ? [unhealthy(service, container)] : []),
    ...(policy === "always" || policy === "unless-stopped" ? [] : [problem(text, up(context))]),
  ];
}

function unhealthy(service: string, { Name }: MachineContainer): Fault {
  const text = `${service} runs, but is not healthy. Its log says why:`;
  return problem(text, `docker logs --tail 50 ${quote(Name.replace(/^\//, ""))}`);
}

/** Creates and starts the containers of the machine part as its files describe them. */
function up({ machinePart }: Machine): string {
  return `docker compose --project-directory ${quote(machinePart?.files.path ?? "")} up --detach`;
}

/** An update of Hotpush on the machine does not change the containers. */
export async function checkMachineVersion(context: Machine): Promise<CheckFinding> {
  const containers = await context.machineContainers();
  const images = [machineServices.receive, machineServices.run].map(
    (service) => containers?.get(service)?.Config.Image,
  );
  const [receive, run] = images;
  if (receive === undefined || run === undefined) return skip("receive and run are not both there");
  if (receive !== run) return warning(`receive runs ${receive}, and run ${run}.`, "hotpush upgrade");
  const [, version] = /^hotpush:(\S+)$/.exec(run) ?? [];
  if (version === undefined || version === readVersion()) return ok(`both run ${run}`);
  return warning(`The machine part runs ${version}; this is ${readVersion()}.`, "hotpush upgrade");
}
