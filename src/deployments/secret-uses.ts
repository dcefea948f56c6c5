import type { SecretSlot } from "#config/secret";
import type { Log } from "#log";
import type { Row, Store } from "#platform/sqlite";

/** When a secret last signed a delivery, and which one. */
export interface SecretUse {
  /** When a service first ran with it. */
  readonly knownSinceMs: number;
  readonly lastUsedAtMs: number | null;
  readonly host: string | null;
  readonly deliveryId: string | null;
}

export interface SecretUses {
  /** Records since when the configured secrets are known, if that is not on disk yet. */
  readonly begin: () => void;
  /** Notes that a secret signed a delivery. It is on disk within a minute. */
  readonly note: (slot: SecretSlot, host: string, deliveryId: string | null) => void;
  /** What is known of each secret; null if there is no previous one. */
  readonly read: () => { readonly current: SecretUse; readonly previous: SecretUse | null };
  /** Writes what is not on disk yet, and nothing more after that. */
  readonly close: () => void;
}

export interface SecretUsesOptions {
  readonly store: Store;
  /** Distinguish the configured secrets from earlier ones. */
  readonly fingerprints: { readonly current: string; readonly previous: string | null };
  readonly log: Log;
}

const writeIntervalMs = 60_000;

/** Keeps the evidence for finishing a rotation: how long ago the previous secret was used. */
export function createSecretUses({ store, fingerprints, log }: SecretUsesOptions): SecretUses {
  const startedAtMs = Date.now();
  const noted = new Map<SecretSlot, Omit<SecretUse, "knownSinceMs">>();
  const unwritten = new Set<SecretSlot>();
  let timer: NodeJS.Timeout | null = null;
  let wroteAtMs = Number.NEGATIVE_INFINITY;

  function write(): void {
    timer = null;
    wroteAtMs = performance.now();
    try {
      store.transaction(() => unwritten.forEach(upsert));
      unwritten.clear();
    } catch (error) {
      logFailure(error);
    }
  }

  function logFailure(error: unknown): void {
    log.error({ event: "store.failed", err: error }, "The use of a secret could not be written to disk");
  }

  function insert(fingerprint: string | null): void {
    const sql =
      "INSERT INTO secret_uses (project, fingerprint, known_since_ms) VALUES ($project, ?, ?) ON CONFLICT DO NOTHING";
    if (fingerprint !== null) store.run(sql, fingerprint, startedAtMs);
  }

  function upsert(slot: SecretSlot): void {
    const fingerprint = fingerprints[slot];
    const use = noted.get(slot);
    if (fingerprint === null || use === undefined) return;
    store.run(
      `INSERT INTO secret_uses VALUES ($project, ?, ?, ?, ?, ?) ON CONFLICT (project, fingerprint) DO UPDATE
       SET last_used_at_ms = excluded.last_used_at_ms, host = excluded.host, delivery_id = excluded.delivery_id`,
      ...[fingerprint, startedAtMs, use.lastUsedAtMs, use.host, use.deliveryId],
    );
  }

  function readSlot(slot: SecretSlot, fingerprint: string): SecretUse {
    const row = store.get(
      "SELECT * FROM secret_uses WHERE project = $project AND fingerprint = ?",
      fingerprint,
    );
    const stored = toUse(row ?? { known_since_ms: startedAtMs });
    const newer = noted.get(slot);
    const isNewer = (newer?.lastUsedAtMs ?? 0) > (stored.lastUsedAtMs ?? 0);
    return isNewer ? { ...stored, ...newer } : stored;
  }

  return {
    begin() {
      try {
        store.transaction(() => Object.values(fingerprints).forEach(insert));
      } catch (error) {
        logFailure(error);
      }
    },
    note(slot, host, deliveryId) {
      noted.set(slot, { lastUsedAtMs: Date.now(), host, deliveryId });
      unwritten.add(slot);
      timer ??= setTimeout(write, Math.max(0, wroteAtMs + writeIntervalMs - performance.now())).unref();
    },
    read: () => ({
      current: readSlot("current", fingerprints.current),
      previous: fingerprints.previous === null ? null : readSlot("previous", fingerprints.previous),
    }),
    close() {
      if (timer) clearTimeout(timer);
      if (unwritten.size > 0) write();
    },
  };
}

function toUse(row: Row): SecretUse {
  return {
    knownSinceMs: row.known_since_ms as number,
    lastUsedAtMs: (row.last_used_at_ms ?? null) as number | null,
    host: (row.host ?? null) as string | null,
    deliveryId: (row.delivery_id ?? null) as string | null,
  };
}
