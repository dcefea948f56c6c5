import { existsSync, readFileSync } from "node:fs";

/** A user of this machine, and what a program needs to run as that user. */
export interface SystemUser {
  readonly uid: number;
  /** The primary group. */
  readonly gid: number;
  /** All groups. */
  readonly groups: readonly number[];
  /** null: /etc/passwd does not have this user. */
  readonly name: string | null;
  readonly home: string;
}

/**
 * The user with this id, by /etc/passwd and /etc/group as they are now.
 *
 * @param gid the primary group, if /etc/passwd does not have the user
 */
export function readUser(uid: number, gid: number): SystemUser {
  const entry = fieldsOf("/etc/passwd").find((fields) => fields[2] === String(uid));
  if (entry === undefined) return { uid, gid, groups: [gid], name: null, home: "/" };
  const [name = "", , , primary, , home] = entry;
  const groups = fieldsOf("/etc/group")
    .filter((fields) => fields[3]?.split(",").includes(name))
    .map((fields) => Number(fields[2]));
  return withGroup({ uid, gid: Number(primary), groups, name, home: home || "/" }, Number(primary));
}

function fieldsOf(path: string): readonly (readonly string[])[] {
  // Without it, the user has no name, which is reported.
  const text = existsSync(path) ? readFileSync(path, "utf8") : "";
  return text.split("\n").map((line) => line.split(":"));
}

/** The same user, also as a member of the group `gid`. */
export function withGroup(user: SystemUser, gid: number): SystemUser {
  return { ...user, groups: [...new Set([gid, ...user.groups])] };
}

/**
 * A prefix of a command line that runs it as `user`; null: as the user of this process. Node can set uid and gid of a child
 * too, but takes all other groups away from it.
 */
export function runAs(user: SystemUser | null): readonly string[] {
  if (user === null) return [];
  const { uid, gid, groups } = user;
  return ["setpriv", `--reuid=${uid}`, `--regid=${gid}`, `--groups=${groups.join(",")}`, "--"];
}
