import { defaultDockerHost, dockerSocketPath } from "#platform/docker/docker-host";
import { ownUid, statOf } from "#platform/files";
import { controllerOf } from "#platform/foreign-files";
import { readUser, type SystemUser, withGroup } from "#platform/users";

/**
 * The user that the scripts of a checkout run as: its owner, also as a member of the group of the Docker socket. A checkout of
 * root in a directory of another user is that user's, who could exchange it. It is looked up each time, because a checkout can
 * change hands.
 *
 * @param dockerHost the DOCKER_HOST of the scripts
 * @returns null if it is the user of this process, or if this process may not become another one
 */
export function ownerOf(repoPath: string, dockerHost = defaultDockerHost): SystemUser | null {
  const owner = ownUid() === 0 ? controllerOf(repoPath) : null;
  if (owner === null) return null;
  const user = readUser(owner.uid, owner.gid);
  const socketPath = dockerSocketPath(dockerHost);
  const socket = socketPath === null ? null : statOf(socketPath);
  return socket === null ? user : withGroup(user, socket.gid);
}
