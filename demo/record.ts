import { columns, type Deployment, toDeployment } from "../src/deployments/deployment.ts";
import { openDeployments } from "../src/deployments/schema.ts";

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
