import { setTimeout as sleep } from "node:timers/promises";
import { type CheckFinding, type ProbeResult, resultOf, warning } from "./check.ts";
import { checkConfiguration, checkUser } from "./configuration/configuration.ts";
import {
  checkSecretCommitted,
  checkSettingsIgnored,
  checkSettingsMode,
} from "./configuration/secret-exposure.ts";
import type { DoctorContext } from "./context.ts";
import { checkDiskSpace } from "./disk/disk-space.ts";
import { checkStateDirectory, checkStateFileSystem } from "./disk/state.ts";
import { checkComposeFile, checkComposeVersion } from "./docker/compose.ts";
import { checkDockerEngine, checkDockerSocket, checkRepositoryPath } from "./docker/engine.ts";
import { checkCommitStatus } from "./git/commit-status.ts";
import { checkBranch, checkRemote } from "./git/remote.ts";
import { checkRepositoryOwner, checkRepositoryRoot } from "./git/repository.ts";
import { checkSigners } from "./git/signers.ts";
import { checkHostKey } from "./git/ssh.ts";
import { lintHealthcheck } from "./lint/healthcheck.ts";
import { lintLabels } from "./lint/labels.ts";
import { lint } from "./lint/lint.ts";
import { lintLiveFile } from "./lint/live-file.ts";
import { lintContainerName, lintNetwork, lintPorts, lintVolumes } from "./lint/side-by-side.ts";
import { lintDependsOn, lintRestart, lintStopGrace } from "./lint/start-and-stop.ts";
import { checkCaddy, checkCertificates } from "./machine-part/caddy.ts";
import { checkMachineContainers, checkMachineVersion } from "./machine-part/containers.ts";
import { checkMachineNetworks } from "./machine-part/networks.ts";
import { checkInbox } from "./projects/inbox.ts";
import { checkProjects } from "./projects/projects.ts";
import { checkSecrets } from "./projects/secrets.ts";
import {
  checkCommittedScript,
  checkDeployScript,
  checkInstalledTools,
  checkWritableByOthers,
} from "./script.ts";
import { checkClock } from "./service/clock.ts";
import { checkPort } from "./service/port.ts";
import { checkPublicUrl } from "./service/public-url.ts";
import { checkRestart } from "./service/restart.ts";
import { checkRunning, checkSecretInUse, checkVersion } from "./service/running.ts";

type Probe = (context: DoctorContext, subject: string) => CheckFinding | Promise<CheckFinding>;

/** The checks of `hotpush doctor`, in the order of its report. A test holds docs/troubleshooting.md to it. */
const table: Readonly<Record<string, readonly (readonly [id: string, subject: string, probe: Probe])[]>> = {
  Configuration: [
    ["configuration", "every variable has a usable value", checkConfiguration],
    ["settings-mode", "no other user can read the file with the secret", checkSettingsMode],
    ["settings-ignored", "git ignores the file with the secret", checkSettingsIgnored],
    ["secret-committed", "the secret is in no file of the repository", checkSecretCommitted],
    ["user", "this is the user that the service runs as", checkUser],
  ],
  Projects: [
    ["projects", "each file in PROJECTS_PATH describes a project", checkProjects],
    ["script-secrets", "only the process that deploys can read the secrets of scripts", checkSecrets],
    ["inbox", "pushes go from receive to run", checkInbox],
  ],
  "Machine part": [
    [
      "machine-containers",
      "Caddy, receive and run are up, and start again after a reboot",
      checkMachineContainers,
    ],
    ["machine-version", "the machine part runs the installed version", checkMachineVersion],
    ["machine-networks", "Caddy reaches every project by its network", checkMachineNetworks],
    ["caddy", "Caddy has loaded its present files", checkCaddy],
    ["certificates", "every site has a valid certificate", checkCertificates],
  ],
  Service: [
    ["port", "the service has the port, or can take it", checkPort],
    ["running", "the service runs", checkRunning],
    ["secret-in-use", "the running service has the secret that is set here", checkSecretInUse],
    ["version", "the running version is the installed one", checkVersion],
    ["restart", "the service starts again after a crash and a reboot", checkRestart],
    ["public-url", "a delivery to the public URL reaches this service", checkPublicUrl],
    ["clock", "the clock is right", checkClock],
  ],
  Disk: [
    ["state-directory", "the service can write its state", checkStateDirectory],
    ["state-file-system", "the state is on a local disk that outlives a restart", checkStateFileSystem],
    ["disk-space", "there is enough space for the state, the checkout, logs and images", checkDiskSpace],
  ],
  Git: [
    ["repository", "REPO_PATH is the root of a git checkout", checkRepositoryRoot],
    ["ownership", "git trusts the owner of the repository", checkRepositoryOwner],
    ["remote", "the remote answers without a prompt", checkRemote],
    ["host-key", "ssh knows the key of the git host", checkHostKey],
    ["branch", "the remote has the branch that BRANCH names", checkBranch],
    ["signers", "the newest commit is signed by an allowed key", checkSigners],
    ["commit-status", "the token may show results on commits", checkCommitStatus],
  ],
  Script: [
    ["deploy-script", "deploy.sh can be started", checkDeployScript],
    ["committed-script", "deploy.sh is committed with its execute bit", checkCommittedScript],
    ["writable-by-others", "only the owner and the group can change what runs", checkWritableByOthers],
    ["tools", "the programs that a deployment needs are installed", checkInstalledTools],
  ],
  Docker: [
    ["docker-socket", "the Docker socket exists, and this user may open it", checkDockerSocket],
    ["docker-engine", "the Docker engine answers, and is new enough", checkDockerEngine],
    ["compose", "docker compose is installed, and new enough", checkComposeVersion],
    ["repository-path", "the repository has the same path here and on the host", checkRepositoryPath],
  ],
  "Compose file": [
    ["compose-file", "compose can read its file", checkComposeFile],
    ["lint-ports", "no app publishes a fixed port", lint(lintPorts)],
    ["lint-container-name", "no app has a fixed container name", lint(lintContainerName)],
    ["lint-network", "no app is bound to a fixed address or another's network", lint(lintNetwork)],
    ["lint-healthcheck", "every app that gets requests has a health check", lint(lintHealthcheck)],
    ["lint-live-file", "the proxy, if there is one, reads which container is live", lint(lintLiveFile)],
    ["lint-label", "every label of Hotpush is known and valid", lint(lintLabels)],
    ["lint-volumes", "no two containers write to one database", lint(lintVolumes)],
    ["lint-depends-on", "a service that depends on another waits until that is healthy", lint(lintDependsOn)],
    [
      "lint-stop-grace",
      "a container that is stopped has enough time to finish its work",
      lint(lintStopGrace),
    ],
    ["lint-restart", "every service starts again after a crash and a reboot", lint(lintRestart)],
  ],
};

/** With PROJECTS_PATH these are about the service, `configuration` is about it and each project, and the rest only that. */
const ofService = new Set([
  ...["user", "port", "running", "version", "restart", "clock", "state-directory", "state-file-system"],
  ...["docker-socket", "docker-engine"],
]);

/** In the machine part, the checks of its containers stand for these. */
const ofOwnProcess = new Set(["port", "version", "restart"]);

/** The checks of the service as a whole, or of one project; null: of a service with one project. */
export function checksAbout(subject: "service" | "project" | null, isMachinePart: boolean): readonly Check[] {
  return checks.filter(({ id, group }) => {
    if (subject === null) return group !== "Projects" && group !== machinePartGroup;
    if (isMachinePart ? ofOwnProcess.has(id) : group === machinePartGroup) return false;
    const isOfService = ofService.has(id) || group === "Projects" || group === machinePartGroup;
    return id === "configuration" || isOfService === (subject === "service");
  });
}

const machinePartGroup = "Machine part";

/** One check. Its `id` names it in the report, in the JSON and in docs/troubleshooting.md. */
export interface Check {
  readonly id: string;
  /** Its heading in the report. */
  readonly group: string;
  /** The claim that it checks, for a person. */
  readonly subject: string;
  readonly probe: (context: DoctorContext) => CheckFinding | Promise<CheckFinding>;
}

/** All checks, in the order of the report. */
export const checks: readonly Check[] = Object.entries(table).flatMap(([group, entries]) =>
  entries.map(([id, subject, probe]) => ({
    ...{ id, group, subject },
    probe: (context) => probe(context, subject),
  })),
);

/** A check and what it found. */
export interface CheckReport {
  readonly check: Check;
  readonly result: ProbeResult;
  /** null: it is about the service, or the only project. */
  readonly project: string | null;
}

/** Longer than any program and any request that a check waits for. */
const longestMs = 15_000;

/** Runs the checks at the same time. A check that itself fails gives a warning, and the others go on. */
export function runChecks(
  context: DoctorContext,
  chosen: readonly Check[] = checks,
): Promise<readonly CheckReport[]> {
  const { project } = context;
  return Promise.all(
    chosen.map(async (check) => ({ check, project, result: await runCheck(check, context) })),
  );
}

async function runCheck({ probe }: Check, context: DoctorContext): Promise<ProbeResult> {
  const ending = new AbortController();
  const late = sleep(longestMs, null, { signal: ending.signal, ref: true }).catch(() => null);
  try {
    const found = await Promise.race([Promise.resolve(context).then(probe), late]);
    return resultOf(found ?? warning(`Check timed out after ${longestMs / 1_000} s.`));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return resultOf(warning(`Check failed: ${reason}`));
  } finally {
    ending.abort();
  }
}
