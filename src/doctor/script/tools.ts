import { findProgram } from "../../platform/find-program.ts";
import { toolsForSigners } from "../../runner/check-tools.ts";
import { type Check, judge, problem } from "../check.ts";
import { hasComposeFile } from "../docker/compose-file.ts";
import type { Scene } from "../scene.ts";

/** Programs, and the Debian packages that they come with. */
const always = [
  ["flock", "util-linux"],
  ["mkfifo", "coreutils"],
  ["git", "git"],
] as const;

/** Each is started by the service, by the example of a deploy.sh, or by `hotpush rollout`. */
export const toolsCheck: Check = {
  id: "tools",
  group: "Script",
  subject: "the programs that a deployment needs are installed",
  async look(scene) {
    const needed = [...always, ...(await sshOf(scene)), ...dockerOf(scene), ...signingOf(scene)];
    const missing = needed.filter(([program]) => findProgram(program, scene.scriptEnv.PATH ?? "") === null);
    const faults = missing.map(([program, name]) =>
      problem(`${program} is not installed, or not in the PATH of the service. As root:`, {
        command: `apt-get install -y ${name}`,
      }),
    );
    return judge(faults, needed.map(([program]) => program).join(", "));
  },
};

async function sshOf({ remote }: Scene): Promise<readonly (readonly [string, string])[]> {
  const answer = await remote();
  const isSsh = "address" in answer && answer.address.scheme === "ssh";
  return isSsh ? [["ssh", "openssh-client"]] : [];
}

function signingOf({ allowedSigners, repoPath }: Scene): readonly (readonly [string, string])[] {
  return toolsForSigners(allowedSigners, repoPath).filter(([program]) => program !== "git");
}

function dockerOf({ repoPath, settings }: Scene): readonly (readonly [string, string])[] {
  return hasComposeFile(repoPath, settings.env) ? [["docker", "docker.io docker-compose docker-buildx"]] : [];
}
