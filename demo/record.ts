import type { Deployment } from "../src/deployments/deployment.ts";
import { columns, openDeployments, toDeployment } from "../src/deployments/store.ts";

/** Reads all deployments from the database of the service, oldest first. */
export function readRecord(statePath: string): readonly Deployment[] {
  const store = openDeployments(statePath);
  try {
    return store.all(`SELECT ${columns} FROM deployments ORDER BY id`).map(toDeployment);
  } finally {
    store.close();
  }
}

/** The state as text: `superseded by 4`. */
export function stateOf({ state, supersededBy }: Deployment): string {
  return supersededBy === null ? state : `${state} by ${supersededBy}`;
}
