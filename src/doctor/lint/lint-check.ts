import type { ComposeModel } from "../../platform/compose/model.ts";
import { type Check, type Fault, judge, skipped } from "../check.ts";
import type { Scene } from "../scene.ts";
import { type Role, rolesOf } from "./roles.ts";

/** The compose file as a rule sees it. */
export interface Project {
  readonly model: ComposeModel;
  readonly roles: readonly Role[];
  /** What is deliberately recreated, by its label, is away during a roll-out as its owner wants it. */
  readonly apps: readonly Role[];
}

type Rule = (project: Project, scene: Scene) => readonly Fault[] | Promise<readonly Fault[]>;

/** A check that reads the compose file, as compose resolves it; `rule` finds what costs requests. */
export function lintCheck(id: string, subject: string, fact: string, rule: Rule): Check {
  return {
    id,
    group: "Compose file",
    subject,
    async look(scene) {
      const answer = await scene.compose();
      if (answer.kind === "no-file") return skipped("the repository has no compose file");
      if (answer.kind === "swarm") return skipped("a Swarm has rules of its own: docs/swarm.md");
      if (answer.kind !== "model") return skipped("docker compose cannot read the file yet");
      const roles = rolesOf(answer.model);
      const apps = roles.filter(({ kind, label }) => kind === "app" && label !== "recreate");
      return judge(await rule({ model: answer.model, roles, apps }, scene), fact);
    },
  };
}
