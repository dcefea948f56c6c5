import { compareVersions } from "../../platform/compare-versions.ts";
import { neededApi } from "../../platform/docker/engine.ts";
import { restartForSocket } from "../../platform/docker/mountinfo.ts";
import { type Check, type Fault, judge, ok, problem, skipped } from "../check.ts";
import { hasComposeFile } from "./compose-file.ts";
import type { EngineAnswer } from "./read-engine.ts";

/** An engine that is down or old lets every roll-out fail. */
export const dockerEngineCheck: Check = {
  id: "docker-engine",
  group: "Docker",
  subject: "the Docker engine answers, and is new enough",
  async look(scene) {
    if (!hasComposeFile(scene.repoPath, scene.settings.env)) {
      return skipped("the repository has no compose file");
    }
    const answer = await scene.engine();
    if (answer.kind === "answers") {
      const { version, apiVersion } = answer;
      if (compareVersions(apiVersion, neededApi) >= 0) return ok(`Docker ${version}, API ${apiVersion}`);
      const text = `Docker ${version} speaks API ${apiVersion}; ${neededApi} (Docker 25) is the oldest that hotpush rollout works with.`;
      return judge(
        [
          problem(text, {
            command: "apt-get install --only-upgrade -y docker-ce || apt-get install -y docker.io",
          }),
        ],
        "",
      );
    }
    if (["EACCES", "ENOENT", "ENOTDIR", "ENOTSOCK", "address"].includes(answer.code))
      return skipped("the Docker socket comes first");
    return judge([silent(answer)], "");
  },
};

function silent({ code, socketPath, text }: Extract<EngineAnswer, { readonly kind: "failed" }>): Fault {
  const restart = code === "ECONNREFUSED" && socketPath !== null ? restartForSocket(socketPath) : null;
  if (restart !== null) {
    const replaced =
      "The Docker engine was started again and has a new socket, which this container does not see. On the host:";
    return problem(replaced, { command: restart });
  }
  const fact =
    code === "ECONNREFUSED"
      ? "The Docker socket is there, but no engine listens."
      : `The Docker engine does not answer as it should: ${text}`;
  return problem(fact, { command: "systemctl restart docker" });
}
