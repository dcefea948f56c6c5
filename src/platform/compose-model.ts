/**
 * The part of `docker compose config --format json` that Hotpush reads, with the settings that only Swarm reads. Compose
 * has validated it; absent keys stay absent.
 */
export interface ComposeModel {
  readonly name: string;
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly volumes?: Readonly<Record<string, { readonly name?: string } | null>>;
  readonly networks?: Readonly<Record<string, { readonly name: string; readonly external?: boolean }>>;
  readonly "x-hotpush"?: { readonly engine?: unknown; readonly stack?: unknown } | null;
}

export interface ComposeService {
  readonly image?: string;
  readonly build?: unknown;
  readonly container_name?: string;
  readonly depends_on?: Readonly<Record<string, { readonly condition?: string }>>;
  readonly deploy?: {
    readonly mode?: string;
    readonly replicas?: number | string;
    readonly restart_policy?: { readonly condition?: string };
    readonly labels?: Readonly<Record<string, string>>;
    readonly update_config?: ComposeUpdateConfig;
    readonly rollback_config?: ComposeUpdateConfig;
  };
  readonly scale?: number;
  readonly healthcheck?: ComposeHealthcheck;
  readonly environment?: Readonly<Record<string, string | null>>;
  readonly labels?: Readonly<Record<string, string>>;
  readonly restart?: string;
  readonly stop_grace_period?: string;
  readonly network_mode?: string;
  readonly networks?: Readonly<
    Record<
      string,
      {
        readonly aliases?: readonly string[];
        readonly ipv4_address?: string;
        readonly ipv6_address?: string;
      } | null
    >
  >;
  readonly ports?: readonly ComposePort[];
  readonly expose?: readonly string[];
  readonly volumes?: readonly ComposeVolume[];
  /** A program that compose runs instead of a container. */
  readonly provider?: unknown;
  readonly post_start?: readonly ComposeHook[];
  readonly pre_stop?: readonly ComposeHook[];
}

/** A command that compose runs in a container. In the model, each `$` of its texts is written `$$`. */
export interface ComposeHook {
  readonly command: readonly string[];
  readonly user?: string;
  readonly privileged?: boolean;
  readonly working_dir?: string;
  readonly environment?: Readonly<Record<string, string | null>>;
}

/** How Swarm replaces the tasks of a service. */
export interface ComposeUpdateConfig {
  readonly parallelism?: number;
  readonly delay?: string;
  readonly monitor?: string;
  readonly order?: "start-first" | "stop-first";
  readonly failure_action?: string;
}

export interface ComposeHealthcheck {
  readonly test?: string | readonly string[];
  readonly disable?: boolean;
  readonly interval?: string;
  readonly retries?: number;
  readonly start_interval?: string;
  readonly start_period?: string;
  readonly timeout?: string;
}

export interface ComposePort {
  readonly published?: string;
  readonly target?: number;
  /** `host` publishes it on the task's own node, anything else on all nodes of the Swarm. */
  readonly mode?: string;
  readonly protocol?: string;
  readonly host_ip?: string;
}

export interface ComposeVolume {
  readonly type: string;
  readonly source?: string;
  readonly target: string;
  readonly read_only?: boolean;
}
