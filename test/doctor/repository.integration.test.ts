import { execFileSync } from "node:child_process";
import { chmodSync } from "node:fs";
import { join } from "node:path";
import { git, type Place, setSettings, testBroken } from "../harness/doctor.ts";
import { becomeNobody, needs } from "../harness/requirements.ts";

testBroken([
  {
    name: "another user has it for itself",
    check: "repository",
    options: needs("root", "otherUser"),
    run: ({ root }) => ({ wrapper: becomeNobody, directory: root }),
    breakIt(place) {
      openTo(place);
      execFileSync("cp", [place.envFile, `${place.root}/.env`]);
      chmodSync(place.repoPath, 0o700);
    },
  },
  {
    name: "another user owns it",
    check: "repository",
    options: needs("root"),
    breakIt: ({ repoPath }) => void execFileSync("chown", ["-R", "65534", repoPath]),
  },
  {
    name: "a remote without main and master",
    check: "branch",
    breakIt(place) {
      git(place, "push", "--quiet", "origin", "main:trunk");
      execFileSync("git", ["-C", place.remotePath, "symbolic-ref", "HEAD", "refs/heads/trunk"]);
      git(place, "push", "--quiet", "origin", ":main");
    },
  },
  {
    name: "BRANCH is not set",
    check: "branch",
    severity: "warning",
    breakIt: (place) => setSettings(place, { BRANCH: "" }),
  },
  {
    name: "BRANCH names a branch that the remote does not have",
    check: "branch",
    breakIt: (place) => setSettings(place, { BRANCH: "master" }),
  },
]);

function openTo({ root, home, temporaryPath, envFile }: Place): void {
  for (const path of [join(root, ".."), root, home, temporaryPath]) chmodSync(path, 0o777);
  chmodSync(envFile, 0o644);
}
