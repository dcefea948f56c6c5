import assert from "node:assert/strict";
import "../harness/environment.ts";
import { execFile, execFileSync } from "node:child_process";
import { readdirSync, readFileSync, statSync } from "node:fs";
import { chmod, chown, mkdir, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { after, before, test } from "node:test";
import { promisify } from "node:util";
import { testSecret } from "../harness/delivery.ts";
import { freePort } from "../harness/listen.ts";
import { writeScript } from "../harness/temporary.ts";
import { until } from "../harness/until.ts";
import { commitAndPush, git, sendingTo } from "../lab/git-remote.ts";
import { onEngine } from "../lab/on-engine.ts";
import { buildImage, type Docker, endingIn, removeImage } from "../lab/project.ts";

const run = promisify(execFile);
const frontUid = 9_000;
/** As on Debian. */
const commonUsers = ["root:x:0:0::/root:/bin/bash"];

const alice = { name: "alice", uid: 61_001 };
const bob = { name: "bob", uid: 61_002 };

onEngine("Hotpush in containers deploys the projects of two users", (env) => {
  let machine: OwnedProjects;
  const checkouts = new Map<string, Checkout>();

  before(async () => {
    machine = await startOwnedProjects(env, [alice, bob]);
    for (const user of [alice, bob]) {
      const files = { ...filesOf(machine.composeName(user.name), machine.image), version: "1\n" };
      checkouts.set(user.name, await machine.add({ ...user, files }));
    }
    await until("both are served", async () => {
      const { projects } = JSON.parse(await machine.inRun("hotpush", "projects", "--json"));
      return projects.length === 2;
    });
  });
  after(() => machine?.remove());

  test("each push is built, rolled out and recorded as the owner of the checkout", async () => {
    for (const [index, user] of [alice, bob].entries()) {
      const checkout = checkoutOf(user.name);
      await checkout.push({ version: "2\n" });
      assert.equal(
        await machine.ending(index + 1),
        "succeeded",
        await machine.docker("compose", "logs", "run"),
      );
      assert.equal(
        readFileSync(join(checkout.path, "said"), "utf8"),
        `${user.name} ${user.uid} ${checkout.home}\n`,
      );
      assert.deepEqual(foreignFiles(checkout.path, user.uid), []);
      const state = join(machine.serverStatePath, "projects", user.name);
      assert.equal(statSync(state).mode & 0o777, 0o700);
      assert.deepEqual(foreignFiles(state, user.uid), []);
      assert.equal(readdirSync(join(state, "rollout")).length, 2, "a lock and the good versions");
    }
  });

  test("a roll back finds the good versions of the owner", async () => {
    const checkout = checkoutOf("alice");
    await checkout.push({ version: "3\n" });
    assert.equal(await machine.ending(3), "succeeded");
    const said = await machine.inRun("hotpush", "rollback", "--project", "alice");
    assert.match(said, /^Deployment 4 goes back to [0-9a-f]{40}\./);
    assert.equal(await machine.ending(4), "succeeded");
    const container = await machine.docker(
      "ps",
      "--quiet",
      `--filter=label=com.docker.compose.project=${machine.composeName("alice")}`,
    );
    assert.equal(await machine.docker("exec", container, "cat", "/version"), "2");
  });

  test("a script of an owner is cancelled with all its processes", async () => {
    await checkoutOf("bob").push({ "deploy.sh": "#!/bin/sh\nsleep 600 &\nsleep 600\n" });
    // This one still ran the script before, which pulled the other one.
    assert.equal(await machine.ending(5), "succeeded");
    await checkoutOf("bob").push({ version: "3\n" });
    await until("the script and its children run", async () => (await processesOf(bob.uid)).length === 3);
    const [first = ""] = await processesOf(bob.uid);
    assert.match(
      await machine.inRun("cat", join(first, "environ")),
      /\0DEPLOY_ID=6\0/,
      "it is found by this",
    );
    await machine.inRun("hotpush", "cancel", "--project", "bob");
    assert.equal(await machine.ending(6), "cancelled");
    assert.deepEqual(await processesOf(bob.uid), []);
  });

  async function processesOf(uid: number): Promise<readonly string[]> {
    const found = await machine.inRun("find", "/proc", "-maxdepth", "1", "-uid", String(uid));
    return found.split("\n").filter(Boolean);
  }

  function checkoutOf(name: string): Checkout {
    const checkout = checkouts.get(name);
    assert.ok(checkout);
    return checkout;
  }
});

function filesOf(name: string, image: string): Record<string, string> {
  const script = [
    "#!/bin/sh -e",
    "git pull --quiet",
    'echo "$(id -un) $(id -u) $HOME" >said',
    'echo own >"$DEPLOY_LOG"',
    "hotpush rollout",
  ];
  const service = {
    build: {
      context: ".",
      dockerfile_inline: `FROM ${image}\nENTRYPOINT []\nCMD ["sleep", "infinity"]\nHEALTHCHECK NONE\nCOPY version /\n`,
    },
    init: true,
  };
  return {
    "deploy.sh": `${script.join("\n")}\n`,
    "compose.yaml": JSON.stringify({ name, services: { app: service } }),
    ".gitignore": "said\n",
  };
}

/** The files below `directory` that do not belong to `uid`. */
function foreignFiles(directory: string, uid: number): readonly string[] {
  return execFileSync("find", [directory, "!", "-user", String(uid)], { encoding: "utf8" })
    .split("\n")
    .filter(Boolean);
}

/** `front` and `run` in containers of the real image, on a machine with users of its own. */
type OwnedProjects = Awaited<ReturnType<typeof startOwnedProjects>>;

interface OwnedProject {
  readonly name: string;
  readonly uid: number;
  readonly files: Readonly<Record<string, string>>;
}

async function startOwnedProjects(
  labEnv: NodeJS.ProcessEnv,
  users: readonly Pick<OwnedProject, "name" | "uid">[],
) {
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
    image,
    /** The compose project of a user's checkout. */
    composeName,
    docker,
    /** Runs a command in the container of `run`. */
    inRun,
    /** The state directory of the machine, with one for the scripts of each project. */
    serverStatePath: at("state"),
    ending: endingIn(at("state/run")),
    /** Adds a project with a remote, in a checkout of its own user. */
    add: (project: OwnedProject) => addProject(root, origin, project),
    async remove() {
      await docker("compose", "down", "--volumes", "--timeout", "1");
      for (const user of users) await removeProject(docker, composeName(user.name));
      await removeImage(labEnv, image);
      await rm(root, { recursive: true, force: true });
    },
  };
}

/** Without its compose file, which may be gone. */
async function removeProject(docker: Docker, name: string): Promise<void> {
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
    image,
    command: "front",
    user: `${frontUid}:${frontUid}`,
    read_only: true,
    cap_drop: ["ALL"],
    environment: { ...paths, STATE_PATH: `${root}/state/front` },
    ports: [`127.0.0.1:${port}:9000`],
    volumes: [same("projects", "ro"), same("state/front"), same("state/socket", "ro")],
  };
  const runs = {
    image,
    command: "run",
    read_only: true,
    tmpfs: ["/tmp"],
    security_opt: ["no-new-privileges"],
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

type Checkout = Awaited<ReturnType<typeof addProject>>;

async function addProject(root: string, origin: string, { name, uid, files }: OwnedProject) {
  const at = (directory: string) => join(root, directory, name);
  const path = at("srv");
  const home = at("home");
  const remote = at("remotes");
  const work = join(root, `work-${name}`);
  await git(root, "init", "--quiet", "--bare", "--initial-branch=main", remote);
  await git(root, "init", "--quiet", "--initial-branch=main", work);
  await git(work, "remote", "add", "origin", remote);
  /** Commits files and pushes them; the remote delivers the push. */
  const push = async (changed: OwnedProject["files"]) => {
    for (const [file, text] of Object.entries(changed)) writeScript(join(work, file), text);
    await commitAndPush(work);
  };
  await push(files);
  await git(root, "clone", "--quiet", remote, path);
  await mkdir(home, { mode: 0o700 });
  await run("chown", ["-R", `${uid}:${uid}`, path, home]);
  await chmod(path, 0o700);
  const hook = sendingTo(origin, `/webhook/${name}`);
  writeScript(join(remote, "hooks/post-receive"), `#!/bin/sh\nexec ${hook}\n`);
  const settings = `REPO_PATH=${path}\nWEBHOOK_SECRET=${testSecret}\nCATCH_UP_INTERVAL=0\n`;
  const file = join(root, "projects", `${name}.env`);
  await writeFile(file, settings, { mode: 0o640 });
  await chown(file, 0, frontUid);
  return { path, home, push };
}
