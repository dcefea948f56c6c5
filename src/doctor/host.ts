import { existsSync, readdirSync, rmSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import type { ProjectConfig } from "#config/project-files";
import { projectNames, readProjectFile, sharedCheckout } from "#config/project-files";
import { newSecretCommand } from "#config/secret";
import { formatSize } from "#config/size";
import { stateDirectoryOf } from "#config/state-path";
import { isInContainer } from "#platform/docker/mountinfo";
import { kindOf, nearestExisting, ownUid, statOf } from "#platform/files";
import { runGit } from "#platform/git";
import { hasSucceeded, runCommand } from "#platform/run-command";
import type { Server } from "#setup/server";
import {
  type Check,
  type DoctorContext,
  type Fault,
  type Finding,
  type Fix,
  ok,
  okUnless,
  problem,
  quote,
  type Settings,
  skip,
  warning,
} from "./context.ts";
import type { ServerContainer } from "./probes.ts";
import { askInContainer, isInOtherContainer } from "./server.ts";

export const configurationChecks: readonly Check[] = [
  {
    id: "configuration",
    about: "both",
    claim: "every setting has a usable value, and every file in PROJECTS_PATH is a project",
    fix: "makes a secret of 32 bytes, or removes the line so that the default applies. Enter the same secret in the form of your git host",
    probe({ settings, faults, warnings, projectsPath }) {
      const { file, fault } = settings;
      const readable = `chown ${ownUid()} ${quote(file)} && chmod 600 ${quote(file)}`;
      const found = [
        ...(fault === null ? [] : [problem(fault, readable)]),
        ...faults.map((text) => problem(text, fixOfSetting(text, settings))),
        ...warnings.map((text) => warning(text, fixOfSetting(text, settings))),
        ...(projectsPath === null ? [] : projectFaults(projectsPath)),
      ];
      return okUnless(found, existsSync(file) ? `with ${file}` : "from the environment");
    },
  },
  {
    id: "secret-files",
    about: "both",
    claim: "only those who need the secrets can read their files",
    fix: "takes the rights away from other users. The file of a project may have mode 0640: `hotpush front` reads it by its group",
    async probe(context) {
      const { project, projectsPath } = context;
      const isService = project === null && projectsPath !== null;
      const files = isService ? scriptSecrets(context.value("SECRETS_PATH") ?? "") : settingsFiles(context);
      if (files.length === 0) return skip("there is no file with secrets");
      const [forbidden, advised] = project === null ? [0o077, "600"] : [0o037, "640"];
      const open = files.filter((file) => ((statOf(file)?.mode ?? 0) & forbidden) !== 0);
      const modes = open.map((file) => {
        const text = `Other users of this machine can read or change ${file}.`;
        return problem(text, `chmod ${advised} ${quote(file)}`);
      });
      const roles = isService ? await context.roles() : null;
      const front = roles && statOf(roles.spoolPath)?.uid;
      const owned = files.filter((file) => front && statOf(file)?.uid === front);
      const owners = owned.map((file) => {
        const text = `\`hotpush front\` (uid ${front}) owns ${file}: only \`hotpush run\` may read it.`;
        return problem(text, `chown ${ownUid()} ${quote(file)}`);
      });
      return okUnless([...modes, ...owners], files.join(", "));
    },
  },
  {
    id: "secret-committed",
    about: "project",
    claim: "the secret is in no file of the repository, and git ignores its file",
    fix: "takes the file out of git and ignores it, or makes a new secret: a committed one stays in the history. Only the last commit and what is staged are searched",
    async probe(context) {
      const { secret, settings, repoPath, scriptEnv: env, user } = context;
      const exposed = await findExposedFile(context);
      // Short words are in every repository.
      if (secret === null || secret.length < 8) return exposed ?? skip("there is no secret to search for");
      // Git reads it from its standard input, because all users can read arguments.
      const search = ["grep", "--files-with-matches", "--fixed-strings", "-f", "-"];
      const options = { env, user, input: `${secret}\n` };
      const trees = ["--cached", "HEAD"];
      const endings = await Promise.all(trees.map((tree) => runGit(repoPath, [...search, tree], options)));
      const searched = endings.flatMap((one) => (one.kind === "exited" && one.code <= 1 ? [one.output] : []));
      if (searched.length === 0) return exposed ?? skip("git does not work in the repository yet");
      const lines = searched.flatMap((output) => output.split("\n").filter(Boolean));
      const files = new Set(lines.map((line) => quote(line.replace(/^HEAD:/, ""))));
      const text = `The secret is committed in ${[...files].join(", ")}: anyone who can read the repository can sign pushes. Make a new one and set it in the form of the git host too.`;
      const committed = files.size === 0 ? [] : [problem(text, newSecret(settings))];
      return okUnless([...(exposed ? [exposed] : []), ...committed], "it is not in what is committed");
    },
  },
];

/** Every sentence of the configuration begins with the name of the variable. */
function fixOfSetting(text: string, settings: Settings): Fix {
  const name = /^[A-Z_]+/.exec(text)?.[0] ?? "";
  const isSecret = /^WEBHOOK_SECRET(_FILE)?$/.test(name) && !text.includes("both set");
  return isSecret ? newSecret(settings) : settings.set(name, null);
}

/** The git host needs the same one, which no command can give it. */
function newSecret({ env, set }: Settings): Fix {
  if (!env.WEBHOOK_SECRET_FILE) return set("WEBHOOK_SECRET", `"$(${newSecretCommand})"`);
  return `${newSecretCommand} | install -m 600 /dev/stdin ${quote(env.WEBHOOK_SECRET_FILE)}`;
}

/** Names that no project can have, and checkouts of two projects. What is wrong within a file is reported with its project. */
function projectFaults(projectsPath: string): readonly Fault[] {
  const seen: ProjectConfig[] = [];
  try {
    const names = projectNames(projectsPath).toSorted();
    return names.flatMap((name) => {
      const { project, faults } = readProjectFile({ projectsPath, secretsPath: null }, name);
      if (faults[0]?.startsWith(`${name}.env is not`)) return [problem(faults[0])];
      const fault = sharedCheckout(seen, project);
      if (project !== null) seen.push(project);
      const change = `${join(projectsPath, `${name}.env`)}: REPO_PATH=<a clone of its own>`;
      return fault === null ? [] : [problem(`Project ${name} is not served: ${fault}`, { change })];
    });
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    return [problem(`PROJECTS_PATH is ${projectsPath}, which this user cannot read (${code}).`)];
  }
}

function scriptSecrets(directory: string): readonly string[] {
  if (kindOf(directory) !== "directory") return [];
  const names = readdirSync(directory).filter((name) => name.endsWith(".env"));
  return names.map((name) => join(directory, name));
}

/** The file with the settings. In a container the service does not read `.env`, but the repository still has it. */
function settingsFiles({ settings: { file }, repoPath }: DoctorContext): readonly string[] {
  return [file, join(repoPath, ".env")].filter((path) => existsSync(path)).slice(0, 1);
}

async function findExposedFile(context: DoctorContext): Promise<Fault | null> {
  const [file] = settingsFiles(context);
  if (file === undefined) return null;
  const [directory, name] = [dirname(file), basename(file)];
  // Not by the settings of the script's user, which can name programs.
  const env = { ...context.scriptEnv, ...(context.user && { GIT_CONFIG_GLOBAL: "/dev/null" }) };
  const isTrue = async (...args: readonly string[]) => hasSucceeded(await runGit(directory, args, { env }));
  if (!(await isTrue("rev-parse", "--is-inside-work-tree"))) return null;
  if (await isTrue("check-ignore", "--quiet", "--", name)) return null;
  const text = `git does not ignore ${file}: the next "git add ." publishes the secret.`;
  const [at, word] = [quote(directory), quote(name)];
  const ignore = `echo ${quote(`/${name}`)} >> ${quote(join(directory, ".gitignore"))}`;
  return warning(text, `git -C ${at} rm --quiet --cached --ignore-unmatch ${word} && ${ignore}`);
}

export const diskChecks: readonly Check[] = [
  {
    id: "state-directory",
    about: "service",
    claim: "each process can write its state, on a local disk that outlives a restart",
    fix: "creates the directory, makes the process's user its owner, or moves STATE_PATH to a local disk. On a server, each container is asked",
    async probe(context) {
      const { server, statePath } = context;
      if (server !== null) return await checkServerState(context, server);
      if (await isInOtherContainer(context)) return skip(askInContainer);
      const code = tryToWrite(statePath);
      const text = `This user (uid ${ownUid()}) cannot write to ${statePath} (${code}). As root:`;
      if (code !== null) return problem(text, ownCommand(statePath, ownUid(), process.getgid?.() ?? 0));
      const isOpen = ((statOf(statePath)?.mode ?? 0) & 0o077) !== 0;
      const seen = `Other users can read ${statePath}, which has the output of deployments.`;
      if (isOpen) return warning(seen, `chmod 700 ${quote(statePath)}`);
      return findUnfitDisk(context) ?? ok(`${statePath} is writable`);
    },
  },
  {
    id: "disk-space",
    about: "project",
    claim: "there is enough space for the state, the checkout, logs and images",
    fix: "prunes images that are not in use; elsewhere it shows what takes most space, for you to choose from",
    async probe({ statePath, repoPath, scriptEnv, engine }) {
      const docker = await engine();
      const images = docker.kind === "answers" && existsSync(docker.rootPath) ? docker.rootPath : null;
      // In order of need: of the places on one disk, the first counts. `hotpush rollout` builds no image with less space.
      const needs: readonly (readonly [content: string, path: string | null, mebibytes: number])[] = [
        ["images", images, 1_024],
        ["the repository", repoPath, 256],
        ["the state", statePath, 64],
        ["logs of scripts", scriptEnv.TMPDIR ?? tmpdir(), 16],
      ];
      const places = needs.flatMap(([content, path, mebibytes]) => {
        if (path === null) return [];
        const at = nearestExisting(path);
        const { bavail, bsize } = statfsSync(at);
        return [{ content, at, device: statSync(at).dev, freeBytes: bavail * bsize, mebibytes }];
      });
      const disks = [...Map.groupBy(places, ({ device }) => device).values()].flatMap(
        ([first]) => first ?? [],
      );
      const full = disks.filter(({ freeBytes, mebibytes }) => freeBytes < mebibytes * 1024 ** 2);
      const faults = full.map(({ content, at, freeBytes, mebibytes }) => {
        const text = `Only ${formatSize(freeBytes)} are free at ${at}, for ${content}; at least ${mebibytes} MiB are needed.`;
        const show = `du -ax --block-size=1K ${quote(at)} | sort -nr | head -n 10`;
        const prune = "docker builder prune --force && docker image prune --force";
        return problem(text, content === "images" ? prune : show);
      });
      return okUnless(
        faults,
        disks.map(({ at, freeBytes }) => `${formatSize(freeBytes)} at ${at}`).join(", "),
      );
    },
  },
];

/** The service creates the directory itself. @returns null if a file could be written and synced, else the error's code */
function tryToWrite(directory: string): string | null {
  const path = join(nearestExisting(directory), `.doctor-${process.pid}`);
  try {
    writeFileSync(path, "hotpush doctor\n", { mode: 0o600, flush: true });
    rmSync(path);
    return null;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "unknown error";
  }
}

function ownCommand(path: string, uid: number, gid: number): string {
  const directory = quote(path);
  return `mkdir -p ${directory} && chown -R ${uid}:${gid} ${directory} && chmod 700 ${directory}`;
}

const withoutLocks = "whose locks do not hold, so two deployments could run at once";
const overlay = 0x794c7630;
/** File systems that cannot hold the state, by their numbers in statfs(2). */
const unfit: ReadonlyMap<number, string> = new Map([
  [0x6969, `NFS, ${withoutLocks}`],
  [0xff534d42, `CIFS, ${withoutLocks}`],
  [0xfe534d42, `SMB, ${withoutLocks}`],
  [0x01021994, "a tmpfs: a reboot loses every accepted push"],
]);

function findUnfitDisk({ statePath, settings }: DoctorContext): Fault | null {
  const typeAt = (path: string) => statfsSync(nearestExisting(path)).type;
  if (typeAt(statePath) === overlay && isInContainer()) {
    const text = `${statePath} is in the container's own layers, which are lost when it is replaced. In the compose file:`;
    return problem(text, { change: `volumes: - hotpush:${statePath}` });
  }
  const found = unfit.get(typeAt(statePath));
  const places = [stateDirectoryOf({ ...settings.env, STATE_PATH: undefined }), "/var/lib/hotpush"];
  const better = places.find((path) => !unfit.has(typeAt(path)));
  const fix = better === undefined ? undefined : settings.set("STATE_PATH", quote(better));
  return found === undefined
    ? null
    : problem(`${statePath} is on ${found}. Put it on a disk of this machine.`, fix);
}

/** Writes a file as the process would. Docker has exit codes of its own for what it cannot do. */
const cannotWrite = 77;
const writeScript = `{ f="$STATE_PATH/.doctor-$$" && mkdir -p "$STATE_PATH" && echo 1 > "$f" && rm "$f"; } || exit ${cannotWrite}`;

/** Only a container of the service knows what its user can write through its mounts. */
async function checkServerState(context: DoctorContext, server: Server): Promise<Finding> {
  const containers = await context.containers();
  if (containers === null) return skip("Docker cannot be asked");
  const roles = ["front", "run"] as const;
  const asked = roles.map(async (role) => {
    const container = containers.get(role);
    return container === undefined ? [] : await stateFaults(context, server, role, container);
  });
  return okUnless((await Promise.all(asked)).flat(), "front and run can write their state");
}

async function stateFaults(
  { scriptEnv: env }: DoctorContext,
  { files, state }: Server,
  role: "front" | "run",
  { Name, Config, State }: ServerContainer,
): Promise<readonly Fault[]> {
  const compose = ["docker", "compose", "--project-directory", files.path] as const;
  const another = [...compose, "run", "--rm", "--no-deps", "-T", "--entrypoint", "sh", role] as const;
  // Nothing can be run in a container that has ended or restarts for ever: another one has the same user and mounts.
  const isUp = State.Health?.Status === "healthy";
  const prefix = isUp ? (["docker", "exec", Name.replace(/^\//, ""), "sh"] as const) : another;
  const ending = await runCommand({ argv: [...prefix, "-c", writeScript], env, timeoutMs: 12_000 });
  const code = ending.kind === "exited" ? ending.code : null;
  if (code === 0) return [];
  const reason = ending.lastLines.at(-1) ?? ending.kind;
  if (code !== cannotWrite)
    return [warning(`${role} cannot be asked whether it can write its state: ${reason}`)];
  const text = `${role} cannot write its state: ${reason}`;
  const [uid = 0, gid = 0] = Config.User.split(":").filter(Boolean).map(Number);
  const directory = statOf(state[role]);
  const isItsOwn = directory?.isDirectory() && directory.uid === uid && (directory.mode & 0o700) === 0o700;
  // What keeps the process out is in the compose file, or in the disk.
  if (isItsOwn)
    return [problem(text, { change: `${files.composeFile}: the volumes of the service ${role}` })];
  const up = `docker compose --project-directory ${quote(files.path)} up --detach --wait`;
  return [problem(text, `${ownCommand(state[role], uid, gid)} && ${up}`)];
}
