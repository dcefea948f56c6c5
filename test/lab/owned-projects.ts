import "../harness/environment.ts";
import { execFile } from "node:child_process";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { promisify } from "node:util";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/free-port.ts";
import { writeScript } from "../harness/temporary.ts";
import { type EndingOf, endingIn } from "./ending.ts";
import { buildImage, removeImage } from "./image.ts";

const run = promisify(execFile);
const sender = join(import.meta.dirname, "send-push.ts");

/** `front` and `run` in containers of the real image, on a machine with users of its own. */
export interface OwnedProjects {
  readonly image: string;
  /** The compose project of a user's checkout. */
  readonly composeName: (user: string) => string;
  readonly statePath: string;
  /** The state directory of the machine, with one for the scripts of each project. */
  readonly serverStatePath: string;
  readonly ending: EndingOf;
  /** Adds a project with a remote, in a checkout of its own user. */
  readonly add: (project: OwnedProject) => Promise<Checkout>;
  readonly docker: (...args: readonly string[]) => Promise<string>;
  /** Runs a command in the container of `run`. */
  readonly inRun: (...command: readonly string[]) => Promise<string>;
  readonly remove: () => Promise<void>;
}

export interface OwnedProject {
  readonly name: string;
  readonly uid: number;
  readonly files: Readonly<Record<string, string>>;
}

export interface Checkout {
  readonly path: string;
  readonly home: string;
  /** Commits files and pushes them; the remote delivers the push. */
  readonly push: (files: Readonly<Record<string, string>>) => Promise<void>;
}

const frontUid = 9_000;
/** As on Debian. */
const commonUsers = ["root:x:0:0::/root:/bin/bash"];

export async function startOwnedProjects(
  labEnv: NodeJS.ProcessEnv,
  users: readonly Pick<OwnedProject, "name" | "uid">[],
): Promise<OwnedProjects> {
  const root = await mkdtemp(join(tmpdir(), "hotpush-e2e-"));
  await chmod(root, 0o755);
  const name = basename(root).toLowerCase();
  const image = `hotpush-e2e:${name}`;
  const env = { ...labEnv, COMPOSE_PROJECT_NAME: name };
  const at = (path: string) => join(root, path);
  const composeName = (user: string) => `${name}-${user}`;
  const docker = async (...args: readonly string[]) =>
    (await run("docker", args, { env, cwd: root })).stdout.trim();
  for (const path of ["projects", "secrets", "srv", "home", "remotes", "state/run", "state/projects"])
    await mkdir(at(path), { recursive: true });
  await mkdir(at("state/front"), { mode: 0o700 });
  await chown(at("state/front"), frontUid, frontUid);
  await mkdir(at("state/socket"), { mode: 0o750 });
  await chown(at("state/socket"), 0, frontUid);
  const entries = users.map(
    ({ name: user, uid }) => `${user}:x:${uid}:${uid}::${at(`home/${user}`)}:/bin/sh`,
  );
  await writeFile(at("passwd"), [...commonUsers, ...entries, ""].join("\n"));
  await writeFile(at("group"), "root:x:0:\n");
  const port = await freePort();
  await writeFile(at("compose.yaml"), JSON.stringify(composeFile(root, { image, port, env })));
  await buildImage(labEnv, image);
  await docker("compose", "up", "--detach", "--wait");
  const inRun = (...command: readonly string[]) => docker("compose", "exec", "-T", "run", ...command);
  const origin = `http://127.0.0.1:${port}`;
  return {
    ...{ image, composeName, docker, inRun, statePath: at("state/run"), serverStatePath: at("state") },
    ending: endingIn(at("state/run")),
    add: (project) => addProject(root, origin, project),
    async remove() {
      await docker("compose", "down", "--volumes", "--timeout", "1");
      for (const user of users) await removeProject(docker, composeName(user.name));
      await removeImage(labEnv, image);
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Without its compose file, which may be gone. */
async function removeProject(docker: OwnedProjects["docker"], name: string): Promise<void> {
  const label = `--filter=label=com.docker.compose.project=${name}`;
  const removeAll = async (list: readonly string[], remove: readonly string[]) => {
    const ids = (await docker(...list)).split("\n").filter(Boolean);
    if (ids.length > 0) await docker(...remove, ...ids);
  };
  await removeAll(["ps", "--all", "--quiet", label], ["rm", "--force"]);
  await removeAll(["network", "ls", "--quiet", label], ["network", "rm"]);
  await removeAll(["images", "--quiet", `--filter=reference=${name}-*`], ["rmi", "--force"]);
}

/** As docs/projects.md has it, but with all paths in one directory. */
function composeFile(
  root: string,
  { image, port, env }: { readonly image: string; readonly port: number; readonly env: NodeJS.ProcessEnv },
): object {
  const socket = (env.DOCKER_HOST ?? "unix:///var/run/docker.sock").replace("unix://", "");
  const paths = {
    PROJECTS_PATH: `${root}/projects`,
    SPOOL_PATH: `${root}/state/front/spool`,
    FRONT_SOCKET: `${root}/state/socket/front.sock`,
  };
  const same = (path: string, mode = "rw") => `${root}/${path}:${root}/${path}:${mode}`;
  const front = {
    ...{ image, command: "front", user: `${frontUid}:${frontUid}`, read_only: true, cap_drop: ["ALL"] },
    environment: { ...paths, STATE_PATH: `${root}/state/front` },
    ports: [`127.0.0.1:${port}:9000`],
    volumes: [same("projects", "ro"), same("state/front"), same("state/socket", "ro")],
  };
  const runs = {
    ...{ image, command: "run", read_only: true, tmpfs: ["/tmp"], security_opt: ["no-new-privileges"] },
    cap_add: ["SYS_PTRACE"],
    environment: { ...paths, STATE_PATH: `${root}/state/run`, SERVER_STATE_PATH: `${root}/state` },
    volumes: [
      ...["state/run", "state/projects", "state/front", "state/socket", "srv", "home", "remotes"].map(
        (path) => same(path),
      ),
      ...["projects", "secrets"].map((path) => same(path, "ro")),
      ...["passwd", "group"].map((file) => `${root}/${file}:/etc/${file}:ro`),
      `${socket}:/var/run/docker.sock`,
    ],
  };
  return { services: { front, run: runs } };
}

async function addProject(
  root: string,
  origin: string,
  { name, uid, files }: OwnedProject,
): Promise<Checkout> {
  const at = (directory: string) => join(root, directory, name);
  const [path, home, remote, work] = [at("srv"), at("home"), at("remotes"), join(root, `work-${name}`)];
  await git(root, "init", "--quiet", "--bare", "--initial-branch=main", remote);
  await git(root, "init", "--quiet", "--initial-branch=main", work);
  await git(work, "remote", "add", "origin", remote);
  const push = async (changed: OwnedProject["files"]) => {
    for (const [file, text] of Object.entries(changed)) writeScript(join(work, file), text);
    await git(work, "add", "--all");
    await git(work, "commit", "--quiet", "--message", "A change");
    await git(work, "push", "--quiet", "origin", "main");
  };
  await push(files);
  await git(root, "clone", "--quiet", remote, path);
  await mkdir(home, { mode: 0o700 });
  await run("chown", ["-R", `${uid}:${uid}`, path, home]);
  await chmod(path, 0o700);
  const hook = [process.execPath, sender, origin, `/webhook/${name}`].map((word) => `'${word}'`).join(" ");
  writeScript(join(remote, "hooks/post-receive"), `#!/bin/sh\nexec ${hook}\n`);
  const settings = `REPO_PATH=${path}\nWEBHOOK_SECRET=${testSecret}\nCATCH_UP_INTERVAL=0\n`;
  const file = join(root, "projects", `${name}.env`);
  await writeFile(file, settings, { mode: 0o640 });
  await chown(file, 0, frontUid);
  return { path, home, push };
}

async function git(directory: string, ...args: readonly string[]): Promise<void> {
  const ada = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "safe.directory=*"];
  await run("git", ["-C", directory, ...ada, ...args]);
}
