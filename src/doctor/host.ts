import { constants, existsSync, globSync, statfsSync } from "node:fs";
import { dirname, join } from "node:path";
import { newSecretCommand } from "#config/secret";
import { serverCommands, stateDirectoryOf } from "#config/server";
import { isInContainer } from "#platform/docker/engine";
import { isAllowed, nearestExisting, ownUid, spaceShortage, statOf } from "#platform/files";
import { quote } from "#platform/ssh";
import type { Server } from "#setup/server";
import type { Check, Settings } from "./context.ts";
import { type Finding, type Fix, ok, okUnless, problem, skip, warning } from "./finding.ts";

export const configurationChecks: readonly Check[] = [
  {
    id: "configuration",
    about: "both",
    claim: "every setting has a usable value",
    fix: "makes a secret of 32 bytes, to enter in the form of your git host too. What another setting was meant to be, only you know",
    probe({ settings, faults, warnings }) {
      const { file, fault } = settings;
      if (fault !== null) return fault;
      const found = [
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
    probe(context) {
      const { project, projectsPath, statePath, settings, repoPath } = context;
      const isService = project === null && projectsPath !== null;
      const secretsPath = context.value("SECRETS_PATH") ?? "";
      // In a container the service does not read `.env`, but the repository still has it.
      const own = [settings.file, join(repoPath, ".env")].find((path) => existsSync(path));
      const secrets = isService ? globSync("*.env", { cwd: secretsPath }) : [];
      const files = isService ? secrets.map((name) => join(secretsPath, name)) : [own ?? []].flat();
      if (files.length === 0) return skip("there is no file with secrets");
      const [forbidden, mode] = project === null ? [0o077, "600"] : [0o037, "640"];
      // `hotpush front` owns its spool.
      const spool = context.value("SPOOL_PATH") ?? join(statePath, "spool");
      const front = isService ? statOf(spool)?.uid : null;
      const faults = files.map((file) => {
        const stats = statOf(file);
        const open = `Other users of this machine can read or change ${file}.`;
        // Else `hotpush front` could lose its right with that of the others.
        const group = mode === "640" ? `chgrp --reference=${quote(dirname(file))} ${quote(file)} && ` : "";
        if (((stats?.mode ?? 0) & forbidden) !== 0)
          return problem(open, `${group}chmod ${mode} ${quote(file)}`);
        const fronts = `\`hotpush front\` owns ${file}: only \`hotpush run\` may read it.`;
        const isFronts = front !== ownUid() && stats?.uid === front;
        return isFronts ? problem(fronts, `chown ${ownUid()} ${quote(file)}`) : null;
      });
      return okUnless(faults, files.join(", "));
    },
  },
];

/** Every sentence of the configuration begins with the name of the variable. Without its line, many a setting protects nothing. */
function fixOfSetting(text: string, { env, set }: Settings): Fix | undefined {
  if (!/^WEBHOOK_SECRET(?:_FILE:.*ENOENT| is (?:empty|still)| has )/.test(text)) return undefined;
  if (!env.WEBHOOK_SECRET_FILE) return set("WEBHOOK_SECRET", `"$(${newSecretCommand})"`);
  return `(umask 077; ${newSecretCommand} > ${quote(env.WEBHOOK_SECRET_FILE)})`;
}

export const diskChecks: readonly Check[] = [
  {
    id: "state-directory",
    about: "service",
    claim: "the state can be written, and is on a local disk that outlives a restart",
    fix: "creates the directory, makes the process's user its owner, or moves STATE_PATH to a local disk",
    probe({ server, statePath, settings }) {
      const fault = server === null ? ownStateFault(statePath) : frontStateFault(server);
      if (fault !== null) return fault;
      const disk = unfit.get(statfsSync(nearestExisting(statePath)).type);
      if (disk === undefined) return ok(`${statePath} is writable`);
      const move = `${statePath} is on ${disk}. Put it on a disk of this machine, or mount a volume there.`;
      const usual = stateDirectoryOf({ ...settings.env, STATE_PATH: undefined });
      return problem(move, server === null ? settings.set("STATE_PATH", quote(usual)) : undefined);
    },
  },
  {
    id: "disk-space",
    claim: "there is enough space for the state, the checkout and images",
    fix: "prunes Docker's build cache and images without a name; elsewhere it shows what takes most space, for you to choose from",
    async probe({ statePath, repoPath, engine }) {
      const docker = await engine();
      const images =
        docker.kind === "answers" ? docker.imagePaths.map((path) => ["images", path, 1_024] as const) : [];
      const faults: Finding[] = [];
      // `hotpush rollout` builds no image with less space than that for images.
      for (const [content, path, mebibytes] of [
        ...images,
        ["the repository", repoPath, 256],
        ["the state", statePath, 64],
      ] as const) {
        const at = nearestExisting(path);
        const shortage = spaceShortage(at, mebibytes * 1024 ** 2);
        if (shortage === null) continue;
        const text = `There is no room for ${content}. ${shortage}`;
        const show = `du -ax --block-size=1K ${quote(at)} | sort -nr | head -n 10`;
        const prune = "docker builder prune --force && docker image prune --force";
        faults.push(problem(text, content === "images" ? prune : show));
      }
      return okUnless(faults, "enough for the state, the checkout and images");
    },
  },
];

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

/** Whether `front`, which is not root, owns its directory. The container of `run` has not all of the directories. */
function frontStateFault({ env, files, state }: Server): Finding | null {
  const [uid = 0, gid = 0] = (env.FRONT_USER ?? "").split(":").map(Number);
  const directory = statOf(state.front);
  if (directory === null ? isInContainer() : directory.uid === uid && (directory.mode & 0o700) === 0o700)
    return null;
  const text = `front (uid ${uid}) cannot write its state: it does not own ${state.front}.`;
  return problem(text, `${ownCommand(state.front, uid, gid)} && ${serverCommands(files).start}`);
}

function ownStateFault(statePath: string): Finding | null {
  const path = nearestExisting(statePath);
  const uid = ownUid();
  const text = `This user (uid ${uid}) cannot write to ${statePath}. As root:`;
  if (!isAllowed(path, constants.W_OK | constants.X_OK))
    return problem(text, ownCommand(statePath, uid, process.getgid?.() ?? 0));
  const seen = `Other users can read ${statePath}, which has the output of deployments.`;
  const isOpen = path === statePath && ((statOf(path)?.mode ?? 0) & 0o077) !== 0;
  return isOpen ? warning(seen, `chmod 700 ${quote(statePath)}`) : null;
}
