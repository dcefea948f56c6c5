import { userInfo } from "node:os";
import { ownUid } from "../../platform/files.ts";
import { type Check, type Cure, judge, ok, problem, skipped } from "../check.ts";
import { isInContainer } from "../in-container.ts";
import { quote } from "../quote.ts";
import { outputOf } from "../run-program.ts";
import type { Scene } from "../scene.ts";
import { statOf } from "../stat.ts";
import { hasComposeFile } from "./compose-file.ts";

/** Containers are replaced through it. */
export const dockerSocketCheck: Check = {
  id: "docker-socket",
  group: "Docker",
  subject: "the Docker socket is there, and this user may open it",
  async look(scene) {
    const { repoPath, settings } = scene;
    if (!hasComposeFile(repoPath, settings.env)) return skipped("the repository has no compose file");
    const engine = await scene.engine();
    if (engine.kind === "answers") return ok("it can be opened");
    const { code, socketPath } = engine;
    if (code === "address") {
      const text = `DOCKER_HOST is ${settings.env.DOCKER_HOST}, but only unix:// and tcp:// are spoken.`;
      return judge([problem(text, settings.unset("DOCKER_HOST"))], "");
    }
    if (socketPath === null) return skipped("DOCKER_HOST names no socket of this machine");
    if (code === "EACCES") return judge([await notAllowed(socketPath, scene)], "");
    if (code !== "ENOENT" && code !== "ENOTDIR" && code !== "ENOTSOCK") return ok("it can be opened");
    return judge([problem(`There is no Docker socket at ${socketPath}.`, missing(socketPath))], "");
  },
};

function missing(socketPath: string): Cure {
  if (isInContainer()) return { change: `volumes: - /var/run/docker.sock:${socketPath}` };
  return { command: "apt-get install -y docker.io docker-compose && systemctl enable --now docker" };
}

/** In a container the groups of the host have no names: there the number is what counts. */
async function notAllowed(socketPath: string, { scriptEnv }: Scene) {
  const gid = statOf(socketPath)?.gid ?? 0;
  const text = `This user (uid ${ownUid()}) may not open ${socketPath}, which is for group ${gid}.`;
  const user = nameOfUser();
  if (isInContainer() || user === null) {
    return problem(`${text} In the compose file, in Hotpush's service:`, { change: `group_add: ["${gid}"]` });
  }
  const named = (await outputOf(["getent", "group", String(gid)], { env: scriptEnv }))?.split(":")[0];
  const make = named === undefined ? `groupadd --gid ${gid} docker-host && ` : "";
  return problem(`${text} As root, then start the service again, and log in again yourself:`, {
    command: `${make}usermod --append --groups ${quote(named ?? "docker-host")} ${quote(user)}`,
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
