import type { Engine } from "../platform/docker/engine.ts";
import { ProblemError } from "../problems.ts";

/**
 * Refuses to work beside the project's own Hotpush, which runs in a container and keeps the lock and the good versions
 * in there: from outside, two roll-outs would run at once, and prune would remove what roll back needs.
 *
 * @param projectDirectory as the host sees it
 * @param env `STATE_PATH` says that the state is known to be the right one; the image sets it
 * @throws ProblemError `state_unusable` with the container to run it in
 */
export async function refuseOtherState(
  engine: Engine,
  projectDirectory: string,
  { STATE_PATH }: NodeJS.ProcessEnv,
): Promise<void> {
  if (STATE_PATH) return;
  const label = [
    "org.opencontainers.image.title=Hotpush",
    `com.docker.compose.project.working_dir=${projectDirectory}`,
  ];
  const filters = encodeURIComponent(JSON.stringify({ label, status: ["running"] }));
  const answer = await engine.get(`/containers/json?filters=${filters}`);
  const [container]: readonly { readonly Names: readonly string[] }[] = JSON.parse(answer.toString());
  if (!container) return;
  const name = container.Names[0]?.replace(/^\//, "") ?? "";
  throw new ProblemError({
    code: "state_unusable",
    detail: `Hotpush runs in the container ${name}, which has the lock of this project's roll-outs and the list of its good versions. Run the command there: docker exec ${name} hotpush ... Nothing was changed. (With STATE_PATH set, it runs here, on the state in that directory.)`,
  });
}
