import type { ComposeModel, ComposeService } from "../../rollout/compose/compose-model.ts";

/** A service of a compose file, with its name. */
export interface NamedService {
  readonly name: string;
  readonly service: ComposeService;
}

/** The service of the compose file that is Hotpush itself: the one that is given a webhook secret. */
export function hotpushServiceOf({ services }: ComposeModel): NamedService | null {
  const found = Object.entries(services).find(([, { environment }]) =>
    Object.keys(environment ?? {}).some((name) => /^WEBHOOK_SECRET(?:_FILE)?$/.test(name)),
  );
  return found ? { name: found[0], service: found[1] } : null;
}
