import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { makeMachine } from "./machine.ts";
import { inOwnEtc } from "./mounts.ts";
import { type Scope, temporaryDirectory, writeScript } from "./temporary.ts";

/** A user of the machine, who owns a project. */
export interface Owner {
  readonly name: string;
  readonly uid: number;
  /** Nobody else can enter it. */
  readonly home: string;
  readonly repoPath: string;
}

/** Files run side by side, and some tests end all processes of an owner. With six digits it would be redacted as a secret. */
const firstUid = 10_000 + (process.pid % 5_000) * 10;
const dockerGid = 61_998;
const commonGid = 61_999;

/** A service that runs as root, on a machine with users that only it knows. */
export type SharedMachine = ReturnType<typeof makeSharedMachine>;

export function makeSharedMachine(scope: Scope) {
  const root = temporaryDirectory(scope);
  chmodSync(root, 0o711);
  const machine = makeMachine(scope, root);
  const { projectsPath, secretsPath } = machine;
  for (const path of [secretsPath, projectsPath]) chmodSync(path, 0o750);
  const serverStatePath = join(root, "machine");
  const temporaryPath = join(root, "tmp");
  for (const path of [temporaryPath, serverStatePath]) mkdirSync(path);
  chmodSync(temporaryPath, 0o1777);
  const socketPath = join(root, "docker.sock");
  writeFileSync(socketPath, "", { mode: 0o660 });
  chownSync(socketPath, 0, dockerGid);
  const owners: Owner[] = [];
  return {
    ...machine,
    root,
    dockerGid,
    commonGid,
    serverStatePath,
    temporaryPath,
    statePath: machine.statePathOf("all"),
    /** Adds a project whose checkout belongs to a new user of the same name, with this script. */
    addOwner(name: string, script: string, settings?: Readonly<Record<string, string>>) {
      const owner = makeOwner(root, name, firstUid + owners.length);
      owners.push(owner);
      writeScript(join(owner.repoPath, "deploy.sh"), `#!/bin/sh\n${script}\n`);
      giveTo(owner, owner.repoPath);
      machine.addProject(name, owner.repoPath, settings);
      return owner;
    },
    /** @param known the users of the machine */
    start({ env = {}, known = owners }: { readonly env?: object; readonly known?: readonly Owner[] } = {}) {
      const docker = { DOCKER_HOST: `unix://${socketPath}`, BUILDX_CONFIG: "/tmp/buildx" };
      const paths = { TMPDIR: temporaryPath, SERVER_STATE_PATH: serverStatePath };
      return machine.start("all", { ...docker, ...paths, ...env }, inOwnEtc(scope, entriesOf(known)));
    },
  };
}

function makeOwner(root: string, name: string, uid: number): Owner {
  const owner = { name, uid, home: join(root, "home", name), repoPath: join(root, "srv", name) };
  mkdirSync(owner.repoPath, { recursive: true });
  mkdirSync(owner.home, { recursive: true });
  chmodSync(owner.home, 0o700);
  writeFileSync(join(owner.home, "key"), `the key of ${name}\n`);
  giveTo(owner, owner.home);
  return owner;
}

/** Gives a directory with everything in it to a user. */
export function giveTo({ uid }: Pick<Owner, "uid">, path: string): void {
  execFileSync("chown", ["-R", `${uid}:${uid}`, path]);
}

/** Commands that add the users to /etc. */
function entriesOf(owners: readonly Owner[]): readonly string[] {
  const names = owners.map(({ name }) => name).join(",");
  return [
    ...owners.map(({ name, uid, home }) => `echo ${name}:x:${uid}:${uid}::${home}:/bin/sh >>/etc/passwd`),
    `echo common:x:${commonGid}:${names} >>/etc/group`,
  ];
}
