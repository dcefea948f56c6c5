import { findProgram } from "../../platform/find-program.ts";
import { toolsForSigners } from "../../runner/check-tools.ts";
import { type Check, okUnless, problem } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { hasComposeFile } from "../docker/probe-docker.ts";

/** A program, and the Debian package that has it. */
type Tool = readonly [program: string, packages: string];

const always: readonly Tool[] = [
  ["flock", "util-linux"],
  ["mkfifo", "coreutils"],
  ["git", "git"],
];

/** The programs that the service, the example of a deploy.sh, or `hotpush rollout` starts. */
export const toolsCheck: Check = {
  id: "tools",
  group: "Script",
  subject: "the programs that a deployment needs are installed",
  async probe(context) {
    const needed = [...always, ...(await toolsForRemote(context)), ...otherTools(context)];
    const missing = needed.filter(([program]) => findProgram(program, context.scriptEnv.PATH ?? "") === null);
    const faults = missing.map(([program, packages]) =>
      problem(`${program} is not installed, or not in the PATH of the service. As root:`, {
        command: `apt-get install -y ${packages}`,
      }),
    );
    return okUnless(faults, needed.map(([program]) => program).join(", "));
  },
};

async function toolsForRemote({ remote }: DoctorContext): Promise<readonly Tool[]> {
  const answer = await remote();
  return "url" in answer && answer.url.scheme === "ssh" ? [["ssh", "openssh-client"]] : [];
}

function otherTools({ allowedSigners, repoPath, settings }: DoctorContext): readonly Tool[] {
  const docker: Tool = ["docker", "docker.io docker-compose docker-buildx"];
  const signing = toolsForSigners(allowedSigners, repoPath).filter(([program]) => program !== "git");
  return [...(hasComposeFile(repoPath, settings.env) ? [docker] : []), ...signing];
}
