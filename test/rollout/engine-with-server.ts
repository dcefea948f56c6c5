import type { Engine } from "../../src/platform/docker/engine.ts";

/** An engine with only the containers of a server: its state is at `statePath`, its live files at `livePath`. */
export function engineWithServer({
  statePath,
  livePath,
}: {
  readonly statePath: string;
  readonly livePath: string;
}): Engine {
  return engineWith(
    {
      Config: { Labels: { "com.docker.compose.service": "caddy" } },
      Mounts: [{ Type: "bind", Source: livePath, Destination: "/run/live" }],
    },
    {
      Config: {
        Labels: { "com.docker.compose.service": "run" },
        Env: [`SERVER_STATE_PATH=${statePath}`],
      },
    },
  );
}

export const emptyEngine = engineWith();

function engineWith(...containers: readonly object[]): Engine {
  const unused = async () => Buffer.alloc(0);
  const get = async (path: string) => {
    const found = containers[Number(/\/containers\/(\d+)\/json/.exec(path)?.[1])];
    const listed = containers.map((_, index) => ({ Id: String(index) }));
    const base = { Id: "x", Name: "/x", State: { Status: "exited" } };
    return Buffer.from(JSON.stringify(found === undefined ? listed : { ...base, ...found }));
  };
  return { get, post: unused, delete: unused };
}
