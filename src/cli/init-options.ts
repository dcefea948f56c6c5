import type { GitHost } from "../init/git-host.ts";
import type { GivenPlace } from "../init/upstreams/choices.ts";

/** The options of `hotpush init`. */
export interface InitOptions {
  readonly url?: URL;
  readonly host?: GitHost;
  readonly service?: string;
  readonly project?: string;
  /** The addresses of services. */
  readonly at?: readonly GivenPlace[];
  /** The address of the page. */
  readonly page?: URL;
  readonly yes?: boolean;
  readonly check?: boolean;
}
