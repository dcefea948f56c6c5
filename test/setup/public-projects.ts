import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { ServedOptions, SetupServices } from "../../src/setup/served.ts";

/** A compose file of a public project, cut down to what matters here. */
export interface PublicProject {
  readonly name: string;
  readonly path: string;
  /** The services, as compose reads them: the file beside it. A test with real compose holds the two together. */
  readonly services: SetupServices;
}

export const publicProjects: readonly PublicProject[] = globSync(join(import.meta.dirname, "public/*.yaml"))
  .sort()
  .map((path) => {
    const services: SetupServices = JSON.parse(readFileSync(path.replace(/yaml$/, "json"), "utf8"));
    return { name: basename(path, ".yaml"), path, services };
  });

/** Nothing is chosen, nothing answers, and Caddy has ports 80 and 443. */
export const noChoices: ServedOptions = {
  name: "app.example.org",
  places: [],
  answers: new Map(),
  caddyPorts: [80, 443],
};
