import type { MachineContainer } from "../../src/doctor/machine-part/probe-machine-part.ts";
import { readVersion } from "../../src/version.ts";

interface Facts {
  readonly status?: string;
  readonly health?: string;
  readonly image?: string;
  readonly restart?: string;
  readonly networks?: readonly string[];
}

/** A container of the machine part as the engine describes it: without `facts`, one that is right. */
export function machineContainer(service: string, facts: Facts = {}): MachineContainer {
  const {
    status = "running",
    health = "healthy",
    restart = "unless-stopped",
    networks = ["hotpush"],
  } = facts;
  const { image: Image = `hotpush:${readVersion()}` } = facts;
  const joined = networks.map((name) => [name, { Gateway: "172.30.1.1", NetworkID: name }] as const);
  return {
    Name: `/hotpush-${service}-1`,
    Config: { Image, Labels: { "com.docker.compose.service": service } },
    HostConfig: { RestartPolicy: { Name: restart } },
    State: { Status: status, Health: { Status: health } },
    NetworkSettings: { Networks: Object.fromEntries(joined) },
  };
}
