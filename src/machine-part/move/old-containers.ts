import type { Container } from "../../platform/docker/container.ts";

/** What runs of a project that has a Hotpush of its own, and maybe a Caddy, in its compose project. */
export interface OwnContainers {
  /** The checkout. */
  readonly root: string;
  /** null: none of its containers is there. */
  readonly composeProject: string | null;
  readonly hotpush: Container | null;
  readonly caddy: Container | null;
}
