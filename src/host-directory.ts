/**
 * Makes the function that gives the path of a directory on the host, by which roll-outs know a project. It is loaded
 * when somebody rolls back: until then nothing in the service speaks to Docker.
 *
 * @returns a function that throws ProblemError `docker_unreachable` where, in a container, the engine cannot be asked
 */
export function createHostDirectory(dockerHost: string | undefined): (directory: string) => Promise<string> {
  return async (directory) => {
    const { hostDirectoryOf } = await import("./rollout/compose/locate-project.ts");
    const { connectEngine } = await import("./platform/docker/engine.ts");
    return await hostDirectoryOf(connectEngine(dockerHost), directory);
  };
}
