import type { Row, SqlValue, Store } from "../platform/sqlite/store.ts";
import type { DeploymentState } from "./deployment.ts";
import { resume } from "./record-ending.ts";

/** What an import has found. */
export interface Imported {
  /** The numbers of the deployments that were added: in the other database, and here. */
  readonly added: ReadonlyMap<number, number>;
  /** How many were here already. */
  readonly known: number;
}

/**
 * Makes the deployments of another database those of the project of `store`, with all that is recorded of them. They keep
 * their numbers if all are free, else they get the next ones, in the same order. A deployment whose script ran when its
 * service stopped is queued again, if it may be. A second import adds only what is new. Call it in a transaction.
 *
 * @param source the project's view of the other database, which no service uses any more
 */
export function importDeployments(store: Store, source: Store): Imported {
  const all = source.all("SELECT * FROM deployments WHERE project = $project ORDER BY queue_order, id");
  const deliveries = source.all("SELECT * FROM deliveries WHERE project = $project");
  const known = findKnown(store, all);
  const added = all.filter((row) => !known.has(numberIn(row)));
  const shift = findShift(store, [...added.map(numberIn), ...deliveries.map(deploymentIn)], known);
  const numberOf = (old: unknown) => known.get(Number(old)) ?? Number(old) + shift;
  addDeployments(store, added, numberOf);
  addRows(store, "deliveries", deliveries.map(renumbered));
  addRows(store, "steps", source.all("SELECT * FROM steps").filter(isAdded).map(renumbered));
  for (const table of ["secret_uses", "pauses"])
    addRows(store, table, source.all(`SELECT * FROM ${table} WHERE project = $project`));
  for (const row of added) resume(store, numberOf(row.id));
  return { added: new Map(added.map(({ id }) => [Number(id), numberOf(id)])), known: known.size };

  function renumbered(row: Row): Row {
    return { ...row, deployment_id: numberOf(row.deployment_id) };
  }

  function isAdded(row: Row): boolean {
    return added.some(({ id }) => id === row.deployment_id);
  }
}

function numberIn({ id }: Row): number {
  return Number(id);
}

function deploymentIn({ deployment_id: id }: Row): number {
  return Number(id);
}

/** The numbers that those of `rows` have here which an earlier import has brought. */
function findKnown(store: Store, rows: readonly Row[]): ReadonlyMap<number, number> {
  const here = new Map<string, number[]>();
  for (const row of store.all("SELECT * FROM deployments WHERE project = $project ORDER BY id"))
    here.set(identityOf(row), [...(here.get(identityOf(row)) ?? []), numberIn(row)]);
  const inOrder = [...rows].sort((one, other) => numberIn(one) - numberIn(other));
  const pairs = inOrder.map((row) => [numberIn(row), here.get(identityOf(row))?.shift()] as const);
  return new Map(pairs.filter((pair): pair is [number, number] => pair[1] !== undefined));
}

/** A deployment has another number after an import, so this is what it is recognized by. */
function identityOf({ trigger, ref, commit_id: commit, created_at_ms: atMs }: Row): string {
  return JSON.stringify([trigger, ref, commit, atMs]);
}

/**
 * What to add to the numbers of new deployments, so that none was ever given here. Deliveries count as well: they know
 * the numbers of deployments that are pruned.
 */
function findShift(store: Store, numbers: readonly number[], known: ReadonlyMap<number, number>): number {
  const first = Math.min(...numbers.filter((number) => !known.has(number)));
  const sql = "SELECT coalesce(max(seq), 0) AS last FROM sqlite_sequence WHERE name = 'deployments'";
  return Math.max(0, Number(store.get(sql)?.last) + 1 - first);
}

/** No script of an earlier service runs any more. */
function addDeployments(store: Store, rows: readonly Row[], numberOf: (old: unknown) => number): void {
  const last = Number(store.get("SELECT coalesce(max(queue_order), 0) AS last FROM deployments")?.last);
  const added = rows.map((row, index) => ({
    ...row,
    id: numberOf(row.id),
    queue_order: last + 1 + index,
    superseded_by: row.superseded_by === null ? null : numberOf(row.superseded_by),
    state: row.state === "running" ? interruptedState(row) : row.state,
  }));
  addRows(store, "deployments", added);
}

function interruptedState({ cancel_asked_at_ms: atMs }: Row): DeploymentState {
  return atMs === null ? "interrupted" : "cancelled";
}

function addRows(store: Store, table: string, rows: readonly Row[]): void {
  const columns = store.all(`SELECT name FROM pragma_table_info('${table}')`).map(({ name }) => String(name));
  const sql = `INSERT OR IGNORE INTO ${table} (${columns.join(", ")}) VALUES (${columns.map(() => "?").join(", ")})`;
  for (const row of rows)
    store.run(sql, ...columns.map((name) => (name === "project" ? store.project : row[name]) as SqlValue));
}
