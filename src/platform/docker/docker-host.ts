/** Used if DOCKER_HOST is not set. */
export const defaultDockerHost = "unix:///var/run/docker.sock";

/** The path of the socket that DOCKER_HOST names; null if it names something else, such as a TCP port. */
export function dockerSocketPath(dockerHost: string): string | null {
  return dockerHost.startsWith("unix://") ? dockerHost.slice("unix://".length) : null;
}
