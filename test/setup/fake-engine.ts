import type { Engine, EngineRefusal } from "../../src/platform/docker/engine.ts";

export interface FakeNetwork {
  readonly Name: string;
  readonly Labels?: Readonly<Record<string, string>>;
  readonly IPAM: { readonly Config: readonly { readonly Subnet: string }[] | null };
}

/** An engine with networks and Caddy's containers, which keeps what it is asked to change. */
export interface FakeEngine {
  readonly engine: Engine;
  readonly networks: FakeNetwork[];
  /** The networks of each container, by its id. */
  readonly caddies: Map<string, string[]>;
  /** The paths of all requests. */
  readonly requests: string[];
  /** Makes the next request to make, join or leave a network fail. */
  refuse: (path: RegExp, refusal: EngineRefusal) => void;
}

export function fakeEngine(networks: FakeNetwork[] = [], caddies = new Map<string, string[]>()): FakeEngine {
  const requests: string[] = [];
  const refusals: [RegExp, EngineRefusal][] = [];

  function get(path: string): object {
    if (path.startsWith("/containers/json?")) {
      return [...caddies].map(([Id, names]) => ({
        Id,
        NetworkSettings: { Networks: Object.fromEntries(names.map((name) => [name, {}])) },
      }));
    }
    return networks;
  }

  function post(path: string, body: unknown): void {
    const index = refusals.findIndex(([pattern]) => pattern.test(path));
    const [refused] = index < 0 ? [] : refusals.splice(index, 1);
    if (refused) throw refused[1];
    const [, , network = "", action] = path.split("/");
    if (network === "create") networks.push(body as FakeNetwork);
    const names = caddies.get((body as { readonly Container?: string }).Container ?? "");
    if (action === "connect") names?.push(network);
    if (action === "disconnect") names?.splice(names.indexOf(network), 1);
  }

  const engine: Engine = {
    async get(path) {
      requests.push(`GET ${path.split("?")[0]}`);
      return Buffer.from(JSON.stringify(get(path)));
    },
    async post(path, body) {
      requests.push(`POST ${path}`);
      post(path, body);
      return Buffer.from("{}");
    },
    delete: async () => Buffer.from(""),
  };
  return {
    engine,
    networks,
    caddies,
    requests,
    refuse: (path, refusal) => refusals.push([path, refusal]),
  };
}

export function networkOf(name: string, subnet: string | null): FakeNetwork {
  return { Name: name, IPAM: { Config: subnet === null ? null : [{ Subnet: subnet }] } };
}
