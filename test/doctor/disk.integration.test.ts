import { execFileSync } from "node:child_process";
import { chmodSync, chownSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type Place, setSettings, testBroken } from "../harness/doctor.ts";
import { mountImage, mountTmpfs } from "../harness/mounts.ts";
import { becomeNobody, needs, nobody } from "../harness/requirements.ts";

const mebibyte = 1024 ** 2;

/** The place as `nobody` sees it: the settings are theirs, and the way to it is open. */
function asNobody({ root, envFile, home, temporaryPath }: Place): void {
  for (const path of [join(root, ".."), root]) chmodSync(path, 0o755);
  for (const path of [envFile, home, temporaryPath]) chownSync(path, nobody, nobody);
}

/** Where the home directory is in the test about memory: on a disk for certain, as the temporary directory may not be. */
const diskInMemory = { path: "" };

testBroken([
  {
    name: "it belongs to another user",
    check: "state-directory",
    options: needs("root", "otherUser"),
    run: { wrapper: becomeNobody },
    breakIt(place) {
      asNobody(place);
      mkdirSync(place.statePath, { mode: 0o700 });
    },
  },
  {
    name: "others can read it",
    check: "state-directory",
    severity: "warning",
    breakIt({ statePath }) {
      mkdirSync(statePath);
      chmodSync(statePath, 0o755);
    },
  },
  {
    name: "it is in memory",
    check: "state-directory",
    options: needs("mount", "ext4"),
    run: () => ({ env: { HOME: diskInMemory.path } }),
    breakIt(place, t) {
      setSettings(place, { STATE_PATH: join(mountTmpfs(t, mebibyte), "state") });
      diskInMemory.path = mountImage(t, join(place.root, "image"), 32 * mebibyte);
    },
  },
  {
    name: "the state's disk is nearly full",
    check: "disk-space",
    options: needs("mount"),
    breakIt(place, t) {
      const disk = mountTmpfs(t, 100 * mebibyte);
      setSettings(place, { STATE_PATH: disk });
      writeFileSync(join(disk, "old backup"), Buffer.alloc(100 * mebibyte - 4096 * 25));
    },
    fix: removeLargest,
  },
  {
    name: "the state's disk has nearly no inodes left",
    check: "disk-space",
    options: needs("mount"),
    breakIt(place, t) {
      const disk = mountTmpfs(t, 100 * mebibyte);
      execFileSync("mount", ["-o", "remount,nr_inodes=2000", disk]);
      setSettings(place, { STATE_PATH: disk });
      mkdirSync(join(disk, "old"));
      for (let file = 0; file < 1_900; file += 1) writeFileSync(join(disk, "old", String(file)), "");
    },
    fix: removeLargest,
  },
]);

/** Runs the command, which shows what takes most, and removes the first thing in it, as the person would. */
function removeLargest(place: Place, { command }: { readonly command: string | null }): void {
  const { repoPath } = place;
  const lines = execFileSync("sh", ["-c", command ?? "false"], { cwd: repoPath, encoding: "utf8" });
  const paths = lines.split("\n").map((line) => line.replace(/^\d+\s+/, ""));
  const whole = /^STATE_PATH=(.*)$/m.exec(readFileSync(place.envFile, "utf8"))?.[1];
  rmSync(paths.find((path) => path !== whole) ?? "", { recursive: true });
}
