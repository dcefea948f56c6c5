import { chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { projectNetwork, type ServerFiles, type ServerState, serviceAlias } from "../../src/config/server.ts";
import { testSecret } from "../harness/delivery.ts";
import { until } from "../harness/until.ts";
import { dockerIn, type Ending, endOf } from "./project.ts";
import { spawnHotpush } from "./spawn-hotpush.ts";

export const appImage = "hotpush-e2e:server-app";
/** The user of `front`. */
export const frontUid = 9000;

/** A project with one service, behind Caddy at an address of its own. */
export interface LabProject {
  readonly name: string;
  readonly origin: string;
  readonly liveFile: string;
  readonly siteFile: string;
  /** In the directory of the project. */
  readonly compose: (...args: readonly string[]) => Promise<string>;
  /** Runs `hotpush rollout` in its directory, with an image of its own for each version. */
  readonly deploy: (version: string) => Promise<Ending>;
  /** Runs `hotpush rollout --back` in its directory. */
  readonly rollBack: () => Promise<Ending>;
  /** Removes its files of the server; its containers keep running. */
  readonly forget: () => void;
}

/** Where a project goes, and the server that serves it. */
export interface ProjectPlace {
  readonly directory: string;
  readonly files: ServerFiles;
  readonly state: ServerState;
  readonly host: string;
  readonly port: number;
  readonly env: NodeJS.ProcessEnv;
  /** Called before the engine has anything of the project. */
  readonly onStart: () => void;
}

/** Writes the files of a project, as `hotpush init` does. */
export function writeProject(name: string, place: ProjectPlace): LabProject {
  const { directory, files, state, host, port, env, onStart } = place;
  const checkout = join(directory, name);
  const writeCompose = (source: object) =>
    writeFileSync(join(checkout, "compose.yaml"), JSON.stringify(composeFile(name, source)));
  const rollOut = (...args: readonly string[]) => {
    const own = { SERVER_PATH: files.path, STATE_PATH: "", HOTPUSH_MIN_FREE: "1 MiB" };
    return endOf(spawnHotpush(checkout, { ...env, ...own }, ["rollout", ...args]));
  };
  const [siteFile, file] = [join(files.sitesPath, `${name}.caddy`), join(files.projectsPath, `${name}.env`)];
  mkdirSync(checkout);
  writeCompose({ image: appImage });
  writeFileSync(
    siteFile,
    `http://${host} {\n\timport deliveries ${name}\n\timport service ${name} web 8080\n}\n`,
  );
  const settings = { REPO_PATH: checkout, WEBHOOK_SECRET: testSecret, CATCH_UP_INTERVAL: "0" };
  writeFileSync(file, linesOf(settings));
  chownSync(file, 0, frontUid);
  return {
    ...{ name, siteFile },
    origin: `http://${host}:${port}`,
    liveFile: join(state.live, name, "web"),
    compose(...args) {
      onStart();
      return dockerIn(checkout, env)("compose", ...args);
    },
    deploy: (version) => {
      writeCompose({ build: { dockerfile_inline: `FROM ${appImage}\nLABEL version=${version}\n` } });
      return rollOut("--commit", Buffer.from(version).toString("hex").padEnd(40, "0"));
    },
    rollBack: () => rollOut("--back"),
    forget() {
      for (const path of [file, siteFile]) rmSync(path, { force: true });
    },
  };
}

/** @param source where the image comes from */
function composeFile(name: string, source: object): object {
  const networks = { default: {}, hotpush: { aliases: [serviceAlias("web", name)] } };
  const healthcheck = {
    test: ["CMD", "./healthcheck.sh"],
    interval: "5s",
    start_period: "30s",
    start_interval: "500ms",
  };
  const web = { ...source, restart: "unless-stopped", healthcheck, networks };
  return { name, services: { web }, networks: { hotpush: { name: projectNetwork(name), external: true } } };
}

/** The text of a file of settings. */
export function linesOf(variables: Readonly<Record<string, string>>): string {
  return Object.entries(variables)
    .map(([name, value]) => `${name}=${value}\n`)
    .join("");
}

/** The text of a live file. */
export function readLiveFile({ liveFile }: LabProject): string {
  return readFileSync(liveFile, "utf8");
}

/** Waits until the app of a project answers through Caddy. */
export async function untilServed({ origin }: LabProject): Promise<void> {
  await until(`an answer at ${origin}`, async () => {
    const answer = await fetch(origin, { headers: { connection: "close" } }).catch(() => null);
    return answer?.status === 200 && (await answer.text()).startsWith("first ");
  });
}
