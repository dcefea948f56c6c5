import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { git, type Place, setSettings } from "../../harness/doctor.ts";
import { testBroken } from "../../harness/doctor-cases.ts";
import { becomeNobody } from "../../harness/nobody.ts";
import { needs } from "../../harness/requirements.ts";

testBroken([
  {
    name: "REPO_PATH is not set, in a checkout",
    check: "repository",
    says: /^REPO_PATH is \/app, which does not exist/,
    breakIt: (place) => writeFileSync(place.envFile, "REPO_PATH=\n"),
  },
  {
    name: "REPO_PATH names a directory without a repository",
    check: "repository",
    says: /home is not a git repository/,
    breakIt: (place) => setSettings(place, { REPO_PATH: place.home }),
  },
  {
    name: "REPO_PATH names a directory within a repository",
    check: "repository",
    says: /app\/web is inside the repository \S+app; REPO_PATH must be its root/,
    breakIt(place) {
      mkdirSync(join(place.repoPath, "web"));
      setSettings(place, { REPO_PATH: join(place.repoPath, "web") });
    },
  },
  {
    name: "another user has it for itself",
    check: "repository",
    options: needs("root", "otherUser"),
    says: /^This user \(uid 65534\) may not enter \S+app\. As root:$/,
    run: ({ root }) => ({ wrapper: becomeNobody, directory: root, args: ["--env-file", `${root}/env`] }),
    breakIt(place) {
      openTo(place);
      execFileSync("cp", [place.envFile, `${place.root}/env`]);
      chmodSync(place.repoPath, 0o700);
    },
  },
  {
    name: "another user owns it",
    check: "ownership",
    options: needs("root"),
    says: /belongs to the user with uid 65534, so git refuses to use it as this user/,
    breakIt: ({ repoPath }) => void execFileSync("chown", ["-R", "65534", repoPath]),
  },
  {
    name: "a remote without main and master",
    check: "branch",
    says: /^The remote has neither main nor master/,
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
    says: /^BRANCH is not set, so main and master are both deployed/,
    breakIt: (place) => setSettings(place, { BRANCH: "" }),
  },
  {
    name: "BRANCH names a branch that the remote does not have",
    check: "branch",
    says: /^BRANCH is master, but the remote has only main/,
    breakIt: (place) => setSettings(place, { BRANCH: "master" }),
  },
  {
    name: "a remote and a checkout without any commit",
    check: "branch",
    says: /^The remote has neither main nor master/,
    breakIt(place) {
      for (const path of [join(place.repoPath, ".git"), place.remotePath]) rmSync(path, { recursive: true });
      execFileSync("git", ["init", "--quiet", "--bare", place.remotePath]);
      git(place, "init", "--quiet");
      git(place, "remote", "add", "origin", place.remotePath);
    },
  },
]);

function openTo({ root, home, temporaryPath, envFile }: Place): void {
  for (const path of [join(root, ".."), root, home, temporaryPath]) chmodSync(path, 0o777);
  chmodSync(envFile, 0o644);
}
