import { compareVersions } from "../../platform/compare-versions.ts";
import { neededCompose } from "../../platform/compose/program.ts";
import { type CheckFinding, noComposeFile, ok, problem, quote, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";

/** `docker compose` is a plugin with an installation and a version of its own. */
export async function checkComposeVersion(context: DoctorContext): Promise<CheckFinding> {
  const answer = await context.compose();
  if (answer.kind === "no-file") return noComposeFile;
  if (answer.kind === "no-compose") {
    const text =
      "There is a compose file, but docker compose does not work. As root, under the name that your packages have:";
    const command = "apt-get install -y docker-compose-plugin || apt-get install -y docker-compose";
    return problem(text, command);
  }
  if (compareVersions(answer.version, neededCompose) >= 0) return ok(`docker compose ${answer.version}`);
  const text = `docker compose is ${answer.version}; hotpush rollout needs ${neededCompose}.`;
  const command =
    "apt-get install --only-upgrade -y docker-compose-plugin || apt-get install -y docker-compose";
  return problem(text, command);
}

/** A roll-out cannot start with a file that compose refuses. */
export async function checkComposeFile({ compose, repoPath }: DoctorContext): Promise<CheckFinding> {
  const answer = await compose();
  if (answer.kind === "no-file") return noComposeFile;
  if (answer.kind === "no-compose") return skip("docker compose comes first");
  if (answer.kind === "swarm") return ok("a stack of a Swarm");
  if (answer.kind === "model") {
    return ok(`${answer.model.name}: ${Object.keys(answer.model.services).join(", ")}`);
  }
  const command = `docker compose --project-directory ${quote(repoPath)} config --quiet`;
  return problem(`docker compose cannot read the project: ${answer.lines.join(" ")}`, command);
}
