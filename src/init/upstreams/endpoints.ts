import type { SetupServices } from "../compose-services.ts";

/** A port of a service's containers that the compose file publishes, once or more often. */
export interface Endpoint {
  readonly service: string;
  /** The port in the container. */
  readonly port: number;
  readonly protocol: string;
  readonly published: readonly HostPort[];
}

/** A port of the machine. */
export interface HostPort {
  /** The machine's address that it is bound to, "" for all. */
  readonly address: string;
  /** As the compose file has it: a number, a range such as `8000-8010`, or "" if Docker chooses one. */
  readonly port: string;
}

/** All published ports of a project. */
export function endpointsOf(services: SetupServices): readonly Endpoint[] {
  const found = new Map<string, Endpoint>();
  for (const [service, { ports = [] }] of Object.entries(services)) {
    for (const { target, published = "", host_ip: address = "", protocol = "tcp" } of ports) {
      if (target === undefined) continue;
      const key = `${service} ${target}/${protocol}`;
      const before = found.get(key)?.published ?? [];
      const hostPort = { address: isAll(address) ? "" : address, port: published === "0" ? "" : published };
      found.set(key, { service, port: target, protocol, published: withPort(before, hostPort) });
    }
  }
  return [...found.values()];
}

function isAll(address: string): boolean {
  return address === "0.0.0.0" || address === "::";
}

/** A port may be listed for all IPv4 and for all IPv6 addresses. */
function withPort(published: readonly HostPort[], added: HostPort): readonly HostPort[] {
  const isThere = published.some(({ address, port }) => address === added.address && port === added.port);
  return isThere ? published : [...published, added];
}

/** Whether only programs of this machine, or of one network, reach it. */
export function isPrivate({ published }: Endpoint): boolean {
  return published.length > 0 && published.every(({ address }) => address !== "");
}

/** As a person writes it: `8080`, `127.0.0.1:8080`. */
function hostPortText({ address, port }: HostPort): string {
  const bound = address.includes(":") ? `[${address}]` : address;
  return `${bound === "" ? "" : `${bound}:`}${port === "" ? "a free port" : port}`;
}

export function publishedText({ published }: Endpoint): readonly string[] {
  return published.map(hostPortText);
}
