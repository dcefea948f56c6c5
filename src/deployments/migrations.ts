/**
 * The schema, as numbered steps: step N takes a database from version N to N + 1 (`PRAGMA user_version`), in one
 * transaction. A released step never changes; a change of the schema is a new step.
 */
export const migrations: readonly string[] = [
  `CREATE TABLE deployments (
     id             INTEGER PRIMARY KEY AUTOINCREMENT,
     trigger        TEXT NOT NULL CHECK (trigger IN ('push', 'catch-up', 'manual', 'rollback')),
     ref            TEXT NOT NULL,
     before_commit  TEXT,                -- null: the branch was new, or nobody said
     commit_id      TEXT NOT NULL,
     repository     TEXT,
     host           TEXT,
     delivery_id    TEXT,                -- the host's own, unsigned
     state          TEXT NOT NULL CHECK (state IN ('queued', 'running', 'succeeded', 'failed', 'timed_out',
                                                   'cancelled', 'superseded', 'interrupted')),
     queue_order    INTEGER NOT NULL,    -- the lowest is next
     attempts       INTEGER NOT NULL DEFAULT 0,
     superseded_by  INTEGER,
     exit_code      INTEGER,
     problem_code   TEXT,
     problem_detail TEXT,
     created_at_ms  INTEGER NOT NULL,
     started_at_ms  INTEGER,
     finished_at_ms INTEGER
   ) STRICT;
   -- single flight: the database itself refuses a second running deployment
   CREATE UNIQUE INDEX one_running ON deployments (state) WHERE state = 'running';
   CREATE INDEX states ON deployments (state, ref);
   -- the newest of a branch, found without sorting all of it
   CREATE INDEX branches ON deployments (ref);
   CREATE INDEX places ON deployments (queue_order);
   CREATE INDEX arrivals ON deployments (ref, commit_id);
   CREATE INDEX departures ON deployments (ref, before_commit);
   CREATE TABLE deliveries (
     digest         TEXT PRIMARY KEY,    -- of the signed bytes
     deployment_id  INTEGER NOT NULL,
     ref            TEXT NOT NULL,
     commit_id      TEXT NOT NULL,
     last_state     TEXT,                -- set when the deployment itself is pruned
     received_at_ms INTEGER NOT NULL
   ) STRICT, WITHOUT ROWID;
   CREATE INDEX deliveries_of ON deliveries (deployment_id);
   CREATE INDEX deliveries_by_age ON deliveries (received_at_ms);
   CREATE TABLE steps (
     deployment_id  INTEGER NOT NULL,
     attempt        INTEGER NOT NULL,
     position       INTEGER NOT NULL,
     name           TEXT NOT NULL,
     started_at_ms  INTEGER NOT NULL,
     PRIMARY KEY (deployment_id, attempt, position)
   ) STRICT, WITHOUT ROWID;
   CREATE TABLE probes (id INTEGER PRIMARY KEY CHECK (id = 1), at_ms INTEGER NOT NULL) STRICT;`,
  `CREATE TABLE secret_uses (
     fingerprint     TEXT PRIMARY KEY,   -- two bytes of a hash: they tell secrets apart, and nothing about one
     known_since_ms  INTEGER NOT NULL,
     last_used_at_ms INTEGER,
     host            TEXT,
     delivery_id     TEXT                -- of the last delivery it signed; the host's own, unsigned
   ) STRICT, WITHOUT ROWID;`,
  // When somebody cancelled the running deployment; null: nobody did.
  "ALTER TABLE deployments ADD COLUMN cancel_asked_at_ms INTEGER",
  `ALTER TABLE deployments ADD COLUMN checked_out_commit TEXT; -- in the repository when its script ended; null: not known
   ALTER TABLE deployments ADD COLUMN subject TEXT;            -- of that commit; of a roll back, of commit_id
   ALTER TABLE deployments ADD COLUMN author TEXT;
   ALTER TABLE deployments ADD COLUMN pusher TEXT;             -- signed by the git host
   ALTER TABLE deployments ADD COLUMN requested_by TEXT;       -- as a command reported it: no proof of anything
   ALTER TABLE deployments ADD COLUMN cancelled_by TEXT;       -- likewise`,
];
