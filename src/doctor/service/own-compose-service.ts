import type { ComposeModel, ComposeService } from "../../platform/compose/model.ts";

/** A service of a compose file, with its name. */
export interface NamedService {
  readonly name: string;
  readonly service: ComposeService;
}

/**
 * The service of the compose file that is Hotpush itself: one that is given a webhook secret and Docker's socket. An app that
 * reads the same `.env` has the secret, too.
 */
export function hotpushServiceOf({ services }: ComposeModel): NamedService | null {
  const given = Object.entries(services).filter(([, { environment }]) =>
    Object.keys(environment ?? {}).some((name) => /^WEBHOOK_SECRET(?:_FILE)?$/.test(name)),
  );
  const [name, service] =
    given.find(([, { volumes = [] }]) => volumes.some(({ target }) => target.endsWith("/docker.sock"))) ??
    given.find(([name]) => name === "hotpush") ??
    given[0] ??
    [];
  return name === undefined || service === undefined ? null : { name, service };
}
