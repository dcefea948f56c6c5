import { chmodSync } from "node:fs";
import { join } from "node:path";
import { git, testBroken } from "../harness/doctor.ts";
import { type ScriptFault, scriptFaults } from "../runner/script-faults.ts";

/** No command is printed for the others: a person knows what should be there. */
const hasCommand = ({ name, code }: ScriptFault) =>
  code !== "interpreter_missing" && !name.includes("directory");

testBroken([
  ...scriptFaults.filter(hasCommand).map(({ name, make: breakIt }) => ({
    name,
    check: "deploy-script",
    breakIt,
  })),
  {
    name: "the execute bit is only here",
    check: "deploy-script",
    breakIt: (place) => void git(place, "update-index", "--chmod=-x", "deploy.sh"),
  },
  {
    name: "the script is not in git",
    check: "deploy-script",
    severity: "warning",
    breakIt: (place) => void git(place, "rm", "--quiet", "--cached", "deploy.sh"),
  },
  {
    name: "all may write to the repository and the script",
    check: "repository",
    breakIt({ repoPath, scriptPath }) {
      for (const path of [repoPath, join(repoPath, ".git"), scriptPath]) chmodSync(path, 0o777);
    },
  },
]);
