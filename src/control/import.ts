import { isAbsolute } from "node:path";
import { type Imported, importDeployments } from "../deployments/import.ts";
import { openLeftDeployments } from "../deployments/schema.ts";
import { projectStatePath } from "../project-parts.ts";
import { isProjectName, onlyProjectName } from "../projects/project.ts";
import { takeLogs } from "../runner/log-file.ts";
import { type ControlSources, jsonReply, refusal, type WholeRoute } from "./route.ts";

/** The answer to an import: how many deployments were added, and how many were here already. */
export interface ImportedJson {
  readonly project: string;
  readonly added: number;
  readonly known: number;
}

/**
 * Makes the deployments of a service that had only one project those of a project here, with their logs. The body has
 * the name of the project, and the state directory of that service or a copy of it; the database in it is brought up
 * to date.
 */
export const importHistory: WholeRoute = (sources, { body }) => {
  const { project, directory } = body;
  if (typeof project !== "string" || !isProjectName(project) || project === onlyProjectName)
    return refusal(400, "The name of the project is missing or not valid.");
  if (typeof directory !== "string" || !isAbsolute(directory))
    return refusal(400, "The directory must be an absolute path.");
  const { added, known } = importFrom(sources, project, directory);
  const text = `${added.size} deployments of ${directory} are those of ${project} now`;
  sources.log.info({ event: "control.import", project, directory, added: added.size, known }, text);
  sources.services.find(project)?.queue.wake();
  return jsonReply({ project, added: added.size, known } satisfies ImportedJson);
};

function importFrom({ store, statePath }: ControlSources, project: string, directory: string): Imported {
  const source = openLeftDeployments(directory);
  try {
    return store.transaction(() => {
      const imported = importDeployments(store.of(project), source.of(onlyProjectName));
      takeLogs(projectStatePath(statePath, project), directory, imported.added);
      return imported;
    });
  } finally {
    source.close();
  }
}
