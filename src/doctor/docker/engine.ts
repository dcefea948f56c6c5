import { realpathSync } from "node:fs";
import { userInfo } from "node:os";
import { compareVersions } from "../../platform/compare-versions.ts";
import { neededApi } from "../../platform/docker/engine.ts";
import { isInContainer, restartForSocket } from "../../platform/docker/mountinfo.ts";
import { findOwnContainer } from "../../platform/docker/own-container.ts";
import { ownUid, statOf } from "../../platform/files.ts";
import { outputOf } from "../../platform/run-command.ts";
import { hostPathOf } from "../../rollout/compose/locate-project.ts";
import {
  type CheckFinding,
  type Fault,
  type Fix,
  noComposeFile,
  ok,
  problem,
  quote,
  skip,
} from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { type EngineFailure, hasComposeFile } from "./probe-docker.ts";

const noSocket: readonly string[] = ["ENOENT", "ENOTDIR", "ENOTSOCK"];

/** Containers are replaced through the socket. */
export async function checkDockerSocket(context: DoctorContext): Promise<CheckFinding> {
  const { settings } = context;
  if (!needsDocker(context)) return noComposeFile;
  const engine = await context.engine();
  if (engine.kind === "answers") return ok("it can be opened");
  const { code, socketPath } = engine;
  if (code === "address") {
    const text = `DOCKER_HOST is ${settings.env.DOCKER_HOST}, but only unix:// and tcp:// are supported.`;
    return problem(text, settings.unset("DOCKER_HOST"));
  }
  if (socketPath === null) return skip("DOCKER_HOST names no socket of this machine");
  if (code === "EACCES") return await notAllowed(socketPath, context);
  if (!noSocket.includes(code)) return ok("it can be opened");
  return problem(`There is no Docker socket at ${socketPath}.`, makeSocket(socketPath));
}

function needsDocker({ machinePart, repoPath, settings }: DoctorContext): boolean {
  return machinePart !== null || hasComposeFile(repoPath, settings.env);
}

function makeSocket(socketPath: string): Fix {
  if (isInContainer()) return { change: `volumes: - /var/run/docker.sock:${socketPath}` };
  return "apt-get install -y docker.io docker-compose && systemctl enable --now docker";
}

/** In a container the groups of the host have no names, and only the number counts. */
async function notAllowed(socketPath: string, { scriptEnv: env }: DoctorContext): Promise<Fault> {
  const gid = statOf(socketPath)?.gid ?? 0;
  const text = `This user (uid ${ownUid()}) may not open ${socketPath}; its group ${gid} may.`;
  const user = nameOfUser();
  if (isInContainer() || user === null) {
    return problem(`${text} In the compose file, in Hotpush's service:`, { change: `group_add: ["${gid}"]` });
  }
  const group = (await outputOf(["getent", "group", String(gid)], { env }))?.split(":")[0];
  const make = group === undefined ? `groupadd --gid ${gid} docker-host && ` : "";
  return problem(`${text} As root, then restart the service, and log in again yourself:`, {
    command: `${make}usermod --append --groups ${quote(group ?? "docker-host")} ${quote(user)}`,
    change: `in a container: group_add: ["${gid}"]`,
  });
}

function nameOfUser(): string | null {
  try {
    return userInfo().username;
  } catch {
    return null;
  }
}

/** If the engine is down or too old, every roll-out fails. */
export async function checkDockerEngine(context: DoctorContext): Promise<CheckFinding> {
  if (!needsDocker(context)) return noComposeFile;
  const answer = await context.engine();
  if (answer.kind === "failed") {
    const isReached = !["EACCES", "address", ...noSocket].includes(answer.code);
    return isReached ? silent(answer) : skip("the Docker socket comes first");
  }
  const { version, apiVersion } = answer;
  if (compareVersions(apiVersion, neededApi) >= 0) return ok(`Docker ${version}, API ${apiVersion}`);
  const text = `Docker ${version} has API ${apiVersion}; hotpush rollout needs at least ${neededApi} (Docker 25).`;
  return problem(text, "apt-get install --only-upgrade -y docker-ce || apt-get install -y docker.io");
}

function silent({ code, socketPath, text }: EngineFailure): Fault {
  const restart = code === "ECONNREFUSED" && socketPath !== null ? restartForSocket(socketPath) : null;
  if (restart !== null) {
    const replaced =
      "The Docker engine was restarted and has a new socket, which this container does not have. On the host:";
    return problem(replaced, restart);
  }
  const fact =
    code === "ECONNREFUSED"
      ? "The Docker socket exists, but no engine listens."
      : `The Docker engine does not answer as it should: ${text}`;
  return problem(fact, "systemctl restart docker");
}

/** The engine resolves bind mounts on the host: a path that exists only in here mounts an empty directory. */
export async function checkRepositoryPath({ engine, repoPath }: DoctorContext): Promise<CheckFinding> {
  const answer = await engine();
  if (answer.kind !== "answers") return skip("the Docker engine comes first");
  const own = await findOwnContainer(answer.engine);
  if (own === null) return ok("this is no container");
  const hostPath = hostPathOf(own.mounts, repoPath);
  if (hostPath === null) {
    const text = `${repoPath} is not mounted from the host. In the compose file, mount the repository at the path that it has on the host, and set REPO_PATH to it:`;
    return problem(text, { change: "volumes: - /srv/app:/srv/app" });
  }
  if (hostPath === repoPath || isSame(hostPath, repoPath)) return ok(hostPath);
  const text = `The repository is ${hostPath} on the host, but ${repoPath} here. In the compose file, mount it at the same path, and set REPO_PATH to ${hostPath}:`;
  return problem(text, { change: `volumes: - ${hostPath}:${hostPath}` });
}

/** True if the host's path is a link to it in here, as a roll-out makes one. */
function isSame(hostPath: string, repoPath: string): boolean {
  try {
    return realpathSync(hostPath) === realpathSync(repoPath);
  } catch {
    return false;
  }
}
