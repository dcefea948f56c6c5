import type {
  ComposeHealthcheck,
  ComposeModel,
  ComposePort,
  ComposeService,
} from "../../platform/compose/model.ts";

/** What is read of a stack file: compose's model of it, with the parts that only Swarm heeds. */
export interface StackModel extends Omit<ComposeModel, "services"> {
  readonly services: Readonly<Record<string, StackModelService>>;
  readonly "x-hotpush"?: { readonly engine?: unknown; readonly stack?: unknown } | null;
}

export interface StackModelService extends Omit<ComposeService, "deploy" | "ports"> {
  readonly deploy?: StackDeploy;
  readonly healthcheck?: ComposeHealthcheck;
  readonly ports?: readonly StackPort[];
  readonly stop_grace_period?: string;
}

export interface StackDeploy {
  readonly mode?: string;
  readonly replicas?: number | string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly update_config?: UpdateConfig;
  readonly rollback_config?: UpdateConfig;
  readonly restart_policy?: { readonly condition?: string };
}

export interface UpdateConfig {
  readonly parallelism?: number;
  readonly delay?: string;
  readonly monitor?: string;
  readonly order?: string;
  readonly failure_action?: string;
}

export interface StackPort extends ComposePort {
  readonly mode?: string;
}

/** Labels of the container and of the Swarm service: people write Hotpush's among either. */
export function labelsOf(service: StackModelService): Readonly<Record<string, string>> {
  return { ...service.deploy?.labels, ...service.labels };
}
