import type { Check } from "./check.ts";
import { configurationCheck } from "./configuration/configuration.ts";
import { secretCommittedCheck } from "./configuration/secret-committed.ts";
import { settingsIgnoredCheck, settingsModeCheck } from "./configuration/settings-file.ts";
import { userCheck } from "./configuration/user.ts";
import { diskSpaceCheck } from "./disk/disk-space.ts";
import { stateDirectoryCheck, stateFileSystemCheck } from "./disk/state.ts";
import { composeCheck, composeFileCheck } from "./docker/compose.ts";
import { dockerEngineCheck, dockerSocketCheck } from "./docker/engine.ts";
import { repositoryPathCheck } from "./docker/repository-path.ts";
import { branchCheck } from "./git/branch.ts";
import { hostKeyCheck } from "./git/host-key.ts";
import { remoteCheck } from "./git/remote.ts";
import { ownershipCheck, repositoryCheck } from "./git/repository.ts";
import { signersCheck } from "./git/signers.ts";
import { containerNameLint, networkLint, portsLint } from "./lint/clashes.ts";
import { dependsOnLint } from "./lint/depends-on.ts";
import { healthcheckLint } from "./lint/healthcheck.ts";
import { labelLint } from "./lint/label.ts";
import { liveFileLint } from "./lint/live-file.ts";
import { restartLint } from "./lint/restart.ts";
import { stopGraceLint } from "./lint/stop-grace.ts";
import { volumesLint } from "./lint/volumes.ts";
import { committedScriptCheck, deployScriptCheck, writableByOthersCheck } from "./script/deploy-script.ts";
import { toolsCheck } from "./script/tools.ts";
import { clockCheck } from "./service/clock.ts";
import { portCheck } from "./service/port.ts";
import { publicUrlCheck } from "./service/public-url.ts";
import { restartCheck } from "./service/restart.ts";
import { runningCheck, secretInUseCheck } from "./service/running.ts";
import { versionCheck } from "./service/version.ts";

/** The checks of `hotpush doctor`, in the order of its report. A test holds docs/troubleshooting.md to it. */
export const checks: readonly Check[] = [
  configurationCheck,
  settingsModeCheck,
  settingsIgnoredCheck,
  secretCommittedCheck,
  userCheck,
  portCheck,
  runningCheck,
  secretInUseCheck,
  versionCheck,
  restartCheck,
  publicUrlCheck,
  clockCheck,
  stateDirectoryCheck,
  stateFileSystemCheck,
  diskSpaceCheck,
  repositoryCheck,
  ownershipCheck,
  remoteCheck,
  hostKeyCheck,
  branchCheck,
  signersCheck,
  deployScriptCheck,
  committedScriptCheck,
  writableByOthersCheck,
  toolsCheck,
  dockerSocketCheck,
  dockerEngineCheck,
  composeCheck,
  repositoryPathCheck,
  composeFileCheck,
  portsLint,
  containerNameLint,
  networkLint,
  healthcheckLint,
  liveFileLint,
  labelLint,
  volumesLint,
  dependsOnLint,
  stopGraceLint,
  restartLint,
];
