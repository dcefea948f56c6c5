import { ProblemError } from "../../problems.ts";
import type { Service } from "../compose/project.ts";

/**
 * Refuses services of which one has the name that another one's second, third… live file has: `api.2` beside `api`.
 *
 * @throws ProblemError `compose_invalid`
 */
export function refuseSharedLiveFile(services: readonly Service[]): void {
  const rolled = services.filter(({ replacement }) => replacement.how === "roll").map(({ name }) => name);
  for (const name of rolled) {
    const [, stem = ""] = /^(.+)\.\d+$/.exec(name) ?? [];
    if (!rolled.includes(stem)) continue;
    const detail = `The live file of the service ${name} would be that of a replica of ${stem}. Give it another name in the compose file, such as ${name.replaceAll(".", "-")}. Nothing was changed.`;
    throw new ProblemError({ code: "compose_invalid", detail });
  }
}
