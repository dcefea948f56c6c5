import { formatDuration } from "../config/duration.ts";
import type { SecretUse, SecretUses } from "../deployments/secret-uses.ts";
import { instant } from "./deployment-json.ts";

export interface SecretJson {
  readonly knownSince: string;
  readonly lastUsedAt: string | null;
  readonly host: string | null;
  readonly deliveryId: string | null;
}

export interface SecretsJson {
  readonly current: SecretJson;
  readonly previous: SecretJson | null;
  /** null where there is no previous one. */
  readonly canDropPrevious: boolean | null;
  readonly advice: string | null;
}

const dayMs = 24 * 3_600_000;
/** Long enough for every webhook of a project to have been used, in most. */
const quietMs = 7 * dayMs;

/**
 * Says whether the previous secret can go: when the current one has signed a delivery since the previous one last did,
 * and the previous one has signed none for seven days.
 */
export function judgeSecrets(
  { current, previous }: ReturnType<SecretUses["read"]>,
  nowMs: number,
): SecretsJson {
  const judged =
    previous === null ? { canDropPrevious: null, advice: null } : judge(current, previous, nowMs);
  return { current: secretJson(current), previous: previous && secretJson(previous), ...judged };
}

function judge(current: SecretUse, previous: SecretUse, nowMs: number) {
  const no = (advice: string) => ({ canDropPrevious: false, advice });
  // Nobody can have been watching for longer than the current secret is known.
  const quietSinceMs = Math.max(previous.lastUsedAtMs ?? 0, current.knownSinceMs);
  const isCurrentUsed = (current.lastUsedAtMs ?? 0) > (previous.lastUsedAtMs ?? 0);
  if (!isCurrentUsed) {
    return no(
      "Not safe to drop: the current secret was not used since. Set it in the webhook's form at the git host.",
    );
  }
  if (nowMs - quietSinceMs < quietMs) {
    const quiet = age(nowMs - quietSinceMs);
    return no(
      `Safe to drop when it was not used for 7 days; so far ${quiet}. Where this service has one webhook only, it is safe now: the current secret was used since.`,
    );
  }
  return {
    canDropPrevious: true,
    advice:
      "Safe to drop: not used for 7 days, and the current secret was used since. Run: hotpush secret drop-previous",
  };
}

function secretJson({ knownSinceMs, lastUsedAtMs, host, deliveryId }: SecretUse): SecretJson {
  const lastUsedAt = lastUsedAtMs === null ? null : instant(lastUsedAtMs);
  return { knownSince: instant(knownSinceMs), lastUsedAt, host, deliveryId };
}

function age(ms: number): string {
  return ms < 2 * dayMs ? formatDuration(Math.max(0, ms)) : `${Math.floor(ms / dayMs)} days`;
}
