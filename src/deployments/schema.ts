import { type OpenStore, openStore, type Schema } from "#platform/sqlite";

/** The record of deployments. */
export const deploymentsSchema: Schema = {
  file: "hotpush.db",
  checkedTable: "deployments",
  migrations: [],
  tables: `CREATE TABLE deployments (
      id             INTEGER PRIMARY KEY AUTOINCREMENT,
      project        TEXT NOT NULL,
      trigger        TEXT NOT NULL CHECK (trigger IN ('push', 'catch-up', 'manual', 'rollback')),
      ref            TEXT NOT NULL,
      before_commit  TEXT,                -- null: the branch was new, or nobody said
      commit_id      TEXT NOT NULL,
      repository     TEXT,
      host           TEXT,
      delivery_id    TEXT,                -- the host's own, unsigned
      state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'timed_out',
                                                    'cancelled', 'superseded', 'interrupted', 'skipped')),
      queue_order    INTEGER NOT NULL,    -- the lowest queued one of a project is next; of others, the order of their starts
      attempts       INTEGER NOT NULL DEFAULT 0,
      superseded_by  INTEGER,
      exit_code      INTEGER,
      problem_code   TEXT,
      problem_detail TEXT,
      is_asked       INTEGER NOT NULL DEFAULT 0, -- it failed, and its delivery was sent again: it runs in any case
      skip_reason    TEXT,
      wait_reason    TEXT,
      created_at_ms  INTEGER NOT NULL,
      started_at_ms  INTEGER,
      finished_at_ms INTEGER,
      cancel_asked_at_ms INTEGER,
      checked_out_commit TEXT,            -- the head that it deploys; null: not known
      subject        TEXT,                -- of that commit; if it is not known, of commit_id
      author         TEXT,
      pusher         TEXT,                -- signed by the git host
      requested_by   TEXT,                -- as a command reported it: no proof of anything
      cancelled_by   TEXT,                -- likewise
      live_at_ms     INTEGER,             -- when users got the new version; null: not known
      requests       TEXT                 -- at the proxy during its roll-out: JSON, an object for each host
    ) STRICT;
    -- single flight: the database itself refuses a second running deployment of a project
    CREATE UNIQUE INDEX one_running ON deployments (project) WHERE state = 'running';
    CREATE INDEX states ON deployments (project, state, ref);
    -- the newest of a branch, found without sorting all of it
    CREATE INDEX branches ON deployments (project, ref);
    CREATE INDEX newest ON deployments (project, id);
    CREATE INDEX places ON deployments (queue_order);
    CREATE INDEX arrivals ON deployments (project, ref, commit_id);
    CREATE TABLE deliveries (
      project        TEXT NOT NULL,
      digest         TEXT NOT NULL,       -- of the signed bytes
      deployment_id  INTEGER NOT NULL,
      ref            TEXT NOT NULL,
      commit_id      TEXT NOT NULL,
      last_state     TEXT,                -- set when the deployment itself is pruned
      received_at_ms INTEGER NOT NULL,
      PRIMARY KEY (project, digest)
    ) STRICT, WITHOUT ROWID;
    CREATE INDEX deliveries_of ON deliveries (deployment_id);
    CREATE INDEX deliveries_by_age ON deliveries (project, received_at_ms);
    CREATE TABLE steps (
      deployment_id  INTEGER NOT NULL,
      attempt        INTEGER NOT NULL,
      position       INTEGER NOT NULL,
      name           TEXT NOT NULL,
      started_at_ms  INTEGER NOT NULL,
      PRIMARY KEY (deployment_id, attempt, position)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE secret_uses (
      project         TEXT NOT NULL,
      fingerprint     TEXT NOT NULL,      -- two bytes of a hash: enough to distinguish secrets, and nothing of one
      known_since_ms  INTEGER NOT NULL,
      last_used_at_ms INTEGER,
      host            TEXT,
      delivery_id     TEXT,               -- of the last delivery it signed; the host's own, unsigned
      PRIMARY KEY (project, fingerprint)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE pauses (
      project        TEXT PRIMARY KEY,
      paused_at_ms   INTEGER NOT NULL,
      reason         TEXT,
      paused_by      TEXT                 -- as a command reported it
    ) STRICT, WITHOUT ROWID;
    -- which pushes of the spool are recorded
    CREATE TABLE spooled (seq INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE) STRICT;
    CREATE TABLE subscribers (
      project      TEXT NOT NULL,
      name         TEXT NOT NULL,         -- shows nothing secret
      wants_starts INTEGER NOT NULL,
      saw_failure  INTEGER NOT NULL DEFAULT 0, -- whether the last success or failure of the project was a failure
      PRIMARY KEY (project, name)
    ) STRICT, WITHOUT ROWID;
    CREATE TABLE outbox (
      id               INTEGER PRIMARY KEY AUTOINCREMENT,
      project          TEXT NOT NULL,
      subscriber       TEXT NOT NULL,
      event            TEXT NOT NULL CHECK (event IN ('started', 'ended')),
      deployment_id    INTEGER NOT NULL,
      deployment       TEXT NOT NULL,     -- as it was then: JSON
      is_after_failure INTEGER NOT NULL,
      created_at_ms    INTEGER NOT NULL
    ) STRICT;
    CREATE INDEX letters ON outbox (project, subscriber, id);
    -- what only grows, and stays when deployments are pruned
    CREATE TABLE totals (
      project        TEXT NOT NULL,
      name           TEXT NOT NULL,       -- of a sample of a metric
      labels         TEXT NOT NULL,       -- as Prometheus writes them, without the project
      value          REAL NOT NULL,
      PRIMARY KEY (project, name, labels)
    ) STRICT;
    CREATE TABLE probes (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;`,
};

/**
 * Opens the record of deployments in `directory`.
 *
 * @throws as `openStore`
 */
export function openDeployments(directory: string): OpenStore {
  return openStore(directory, deploymentsSchema);
}
