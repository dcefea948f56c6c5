import type { Check } from "./check.ts";
import { composeCheck, composeFileCheck } from "./docker/compose.ts";
import { dockerEngineCheck } from "./docker/docker-engine.ts";
import { dockerSocketCheck } from "./docker/docker-socket.ts";
import { repositoryPathCheck } from "./docker/repository-path.ts";
import { branchCheck } from "./git/branch.ts";
import { hostKeyCheck } from "./git/host-key.ts";
import { remoteCheck } from "./git/remote.ts";
import { ownershipCheck, repositoryCheck } from "./git/repository.ts";
import { signersCheck } from "./git/signers.ts";
import { containerNameLint, networkLint, portsLint } from "./lint/clashes.ts";
import { volumesLint } from "./lint/data.ts";
import { dependsOnLint } from "./lint/depends-on.ts";
import { healthcheckLint } from "./lint/health.ts";
import { labelLint } from "./lint/labels.ts";
import { liveFileLint } from "./lint/live-file.ts";
import { restartPolicyLint } from "./lint/restart-policy.ts";
import { stopGraceLint } from "./lint/stop-grace.ts";
import { committedScriptCheck } from "./script/committed-script.ts";
import { deployScriptCheck } from "./script/deploy-script.ts";
import { toolsCheck } from "./script/tools.ts";
import { writableByOthersCheck } from "./script/writable-by-others.ts";
import { portCheck } from "./service/port.ts";
import { restartCheck } from "./service/restart.ts";
import { runningCheck, secretInUseCheck } from "./service/running.ts";
import { versionCheck } from "./service/version.ts";
import { configCheck } from "./settings/config.ts";
import { secretCommittedCheck } from "./settings/secret-committed.ts";
import { settingsIgnoredCheck, settingsModeCheck } from "./settings/settings-file.ts";
import { userCheck } from "./settings/user.ts";
import { diskSpaceCheck } from "./state/disk-space.ts";
import { stateFileSystemCheck } from "./state/file-system.ts";
import { stateDirectoryCheck } from "./state/state-directory.ts";
import { clockCheck } from "./web/clock.ts";
import { publicUrlCheck } from "./web/public-url.ts";

/** Everything that `hotpush doctor` looks at, in the order of its report. docs/troubleshooting.md is held to it. */
export const checks: readonly Check[] = [
  configCheck,
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
  restartPolicyLint,
];
