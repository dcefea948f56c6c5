import type { ComposeModel, ComposeService } from "../../platform/compose/model.ts";
import { type Project, readProject, type Service } from "../compose/project.ts";
import { labelsOf, type StackModel, type StackModelService } from "./stack-model.ts";
import { type UpdatePolicy, updatePolicyOf } from "./update-policy.ts";

/** A stack as a roll-out sees it. */
export interface Stack extends Project {
  readonly services: readonly StackService[];
}

export interface StackService extends Service {
  readonly update: UpdatePolicy;
  readonly hasHealthCheck: boolean;
  /** Its tasks may end by themselves (a migration): Swarm was told not to start them again. */
  readonly mayEnd: boolean;
}

/** Makes the stack of compose's model of its file. Swarm itself finds out what changed: no hashes are needed. */
export function readStack(model: StackModel): Stack {
  const project = readProject(asCompose(model));
  const services = project.services.map((service) => {
    const said = model.services[service.name] ?? {};
    const hasHealthCheck = said.healthcheck !== undefined && !said.healthcheck.disable;
    const mayEnd = (said.deploy?.restart_policy?.condition ?? "any") !== "any";
    return { ...service, update: updatePolicyOf(service, said), hasHealthCheck, mayEnd };
  });
  return { name: model.name, services };
}

/** Without what Swarm does not heed, or what does not keep two tasks from running side by side as it would containers. */
function asCompose(model: StackModel): ComposeModel {
  const services = Object.entries(model.services).map(([name, service]) => [name, comparable(service)]);
  return { ...model, services: Object.fromEntries(services) };
}

/** A published port clashes only where it is the host's own (`mode: host`): else the Swarm shares it out. */
function comparable(service: StackModelService): ComposeService {
  const { container_name: _, network_mode: __, depends_on: ___, ...rest } = service;
  const ports = (service.ports ?? []).filter(({ mode }) => mode === "host");
  return { ...rest, ports, labels: labelsOf(service) };
}
