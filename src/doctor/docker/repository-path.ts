import { realpathSync } from "node:fs";
import { findOwnContainer } from "../../platform/docker/own-container.ts";
import { hostPathOf } from "../../rollout/compose/locate-project.ts";
import { type Check, ok, problem, skip } from "../check.ts";

/** The engine resolves bind mounts on the host: a path that exists only in here mounts an empty directory. */
export const repositoryPathCheck: Check = {
  id: "repository-path",
  group: "Docker",
  subject: "the repository has the same path here and on the host",
  async probe({ engine, repoPath }) {
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
  },
};

/** True if the host's path is a link to it in here, as a roll-out makes one. */
function isSame(hostPath: string, repoPath: string): boolean {
  try {
    return realpathSync(hostPath) === realpathSync(repoPath);
  } catch {
    return false;
  }
}
