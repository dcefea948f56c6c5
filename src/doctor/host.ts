import { existsSync, readdirSync, rmSync, statfsSync, writeFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { newSecretCommand } from "#config/secret";
import { serverCommands } from "#config/server";
import { formatSize } from "#config/size";
import { stateDirectoryOf } from "#config/state-path";
import { isInContainer } from "#platform/docker/mounts";
import { kindOf, nearestExisting, ownUid, statOf } from "#platform/files";
import { runGit } from "#platform/git";
import { hasSucceeded } from "#platform/run-command";
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
import { askInContainer, isInOtherContainer } from "./server.ts";

export const configurationChecks: readonly Check[] = [
  {
    id: "configuration",
    about: "both",
    claim: "every setting has a usable value",
    fix: "makes a secret of 32 bytes, or removes the line so that the default applies. Enter the same secret in the form of your git host",
    probe({ settings, faults, warnings }) {
      const { file, fault } = settings;
      const readable = `chown ${ownUid()} ${quote(file)} && chmod 600 ${quote(file)}`;
      const found = [
        ...(fault === null ? [] : [problem(fault, readable)]),
        ...faults.map((text) => problem(text, fixOfSetting(text, settings))),
        ...warnings.map((text) => warning(text, fixOfSetting(text, settings))),
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
      const { project, projectsPath, statePath, settings } = context;
      const isService = project === null && projectsPath !== null;
      const files = isService ? scriptSecrets(context.value("SECRETS_PATH") ?? "") : settingsFiles(context);
      if (files.length === 0) return skip("there is no file with secrets");
      const [forbidden, advised] = project === null ? [0o077, "600"] : [0o037, "640"];
      const spoolPath = settings.env.SPOOL_PATH?.trim() || join(statePath, "spool");
      const front = isService ? statOf(spoolPath)?.uid : undefined;
      const faults = files.flatMap((file) => {
        const { mode = 0, uid } = statOf(file) ?? {};
        const open = `Other users of this machine can read or change ${file}.`;
        const foreign = `\`hotpush front\` (uid ${front}) owns ${file}: only \`hotpush run\` may read it.`;
        return [
          ...((mode & forbidden) === 0 ? [] : [problem(open, `chmod ${advised} ${quote(file)}`)]),
          ...(uid === front && front !== undefined && front !== ownUid()
            ? [problem(foreign, `chown ${ownUid()} ${quote(file)}`)]
            : []),
        ];
      });
      return okUnless(faults, files.join(", "));
    },
  },
  {
    id: "secret-committed",
    about: "project",
    claim: "git ignores the file with the secret",
    fix: "takes the file out of git and ignores it. A committed secret stays in the history: make a new one",
    async probe(context) {
      const [file] = settingsFiles(context);
      if (file === undefined) return skip("there is no file with secrets");
      const [directory, name] = [dirname(file), basename(file)];
      // Not by the settings of the script's user, which can name programs.
      const env = { ...context.scriptEnv, ...(context.user && { GIT_CONFIG_GLOBAL: "/dev/null" }) };
      const isTrue = async (...args: readonly string[]) =>
        hasSucceeded(await runGit(directory, args, { env }));
      if (!(await isTrue("rev-parse", "--is-inside-work-tree"))) return ok(`${file} is in no repository`);
      if (await isTrue("check-ignore", "--quiet", "--", name)) return ok(`git ignores ${file}`);
      const text = `git does not ignore ${file}: the next "git add ." publishes the secret.`;
      const [at, word] = [quote(directory), quote(name)];
      const ignore = `echo ${quote(`/${name}`)} >> ${quote(join(directory, ".gitignore"))}`;
      return warning(text, `git -C ${at} rm --quiet --cached --ignore-unmatch ${word} && ${ignore}`);
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

function scriptSecrets(directory: string): readonly string[] {
  if (kindOf(directory) !== "directory") return [];
  const names = readdirSync(directory).filter((name) => name.endsWith(".env"));
  return names.map((name) => join(directory, name));
}

/** The file with the settings. In a container the service does not read `.env`, but the repository still has it. */
function settingsFiles({ settings: { file }, repoPath }: DoctorContext): readonly string[] {
  return [file, join(repoPath, ".env")].filter((path) => existsSync(path)).slice(0, 1);
}

export const diskChecks: readonly Check[] = [
  {
    id: "state-directory",
    about: "service",
    claim: "each process can write its state, on a local disk that outlives a restart",
    fix: "creates the directory, makes the process's user its owner, or moves STATE_PATH to a local disk",
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
    claim: "there is enough space for the state, the checkout and images",
    fix: "prunes images that are not in use; elsewhere it shows what takes most space, for you to choose from",
    async probe({ statePath, repoPath, engine }) {
      const docker = await engine();
      const prune = "docker builder prune --force && docker image prune --force";
      // `hotpush rollout` builds no image with less space.
      const images = docker.kind === "answers" ? [["images", docker.rootPath, 1_024, prune] as const] : [];
      const places = [
        ...images.filter(([, path]) => existsSync(path)),
        ["the repository", repoPath, 256, null] as const,
        ["the state", statePath, 64, null] as const,
      ].map(([content, path, mebibytes, fix]) => {
        const at = nearestExisting(path);
        const { bavail, bsize } = statfsSync(at);
        return { content, at, mebibytes, fix, freeBytes: bavail * bsize };
      });
      const faults = places
        .filter(({ freeBytes, mebibytes }) => freeBytes < mebibytes * 1024 ** 2)
        .map(({ content, at, mebibytes, fix, freeBytes }) => {
          const text = `Only ${formatSize(freeBytes)} are free at ${at}, for ${content}; at least ${mebibytes} MiB are needed.`;
          return problem(text, fix ?? `du -ax --block-size=1K ${quote(at)} | sort -nr | head -n 10`);
        });
      return okUnless(
        faults,
        places.map(({ content, freeBytes }) => `${formatSize(freeBytes)} for ${content}`).join(", "),
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
/** File systems that cannot hold the state, by their numbers in statfs(2). */
const unfit: ReadonlyMap<number, string> = new Map([
  [0x6969, `NFS, ${withoutLocks}`],
  [0xff534d42, `CIFS, ${withoutLocks}`],
  [0xfe534d42, `SMB, ${withoutLocks}`],
  [0x01021994, "a tmpfs: a reboot loses every accepted push"],
  ...(isInContainer()
    ? ([[0x794c7630, "the container's own layers, which are lost when it is replaced"]] as const)
    : []),
]);

function findUnfitDisk({ statePath, settings }: DoctorContext): Fault | null {
  const found = unfit.get(statfsSync(nearestExisting(statePath)).type);
  if (found === undefined) return null;
  const usual = stateDirectoryOf({ ...settings.env, STATE_PATH: undefined });
  const text = `${statePath} is on ${found}. Put it on a disk of this machine, or mount a volume there.`;
  return problem(text, settings.set("STATE_PATH", quote(usual)));
}

/** Whether each process owns its directory. Its container says as whom it runs. */
async function checkServerState({ containers }: DoctorContext, { files, state }: Server): Promise<Finding> {
  const found = await containers();
  if (found === null) return skip("Docker cannot be asked");
  const faults = (["front", "run"] as const).flatMap((role) => {
    const [uid = 0, gid = 0] = (found.get(role)?.Config.User ?? "").split(":").filter(Boolean).map(Number);
    const directory = statOf(state[role]);
    const isItsOwn = directory?.uid === uid && (directory.mode & 0o700) === 0o700;
    // A container has not all of the directories.
    if (!found.has(role) || isItsOwn || (directory === null && isInContainer())) return [];
    const own = ownCommand(state[role], uid, gid);
    const text = `${role} (uid ${uid}) cannot write its state: it does not own ${state[role]}.`;
    return [problem(text, `${own} && ${serverCommands(files).start}`)];
  });
  return okUnless(faults, "front and run own their state");
}
