import { spawn, spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { LogLine } from "./processes.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

const checkout = fileURLToPath(new URL("../..", import.meta.url));

/** A systemd of its own that runs units of examples/systemd, with directories that only it sees. */
export interface OwnSystemd {
  /** What a unit has logged so far. */
  readonly logOf: (unit: string) => readonly LogLine[];
  /** All that the units and systemd itself have printed, for a failed test. */
  readonly output: () => string;
}

export interface OwnSystemdOptions {
  readonly units: readonly string[];
  /** Lines for the section [Service] of each unit. */
  readonly lines: readonly string[];
  /** Shell commands that prepare the machine, before systemd starts. /etc and /srv are its own. */
  readonly prepare: string;
}

/** Where the second systemd finds its control group, for both of the ways to mount them. */
const cgroups = ["/sys/fs/cgroup/unified", "/sys/fs/cgroup"].find((path) =>
  existsSync(`${path}/cgroup.procs`),
);

/** Why it cannot run here, or false. */
export function cannotRunSystemd(): string | false {
  if (!existsSync("/lib/systemd/systemd") || cgroups === undefined) return "it needs systemd and cgroup2";
  const { status } = spawnSync("sh", ["-c", `unshare -mpfuiC true && mkdir ${cgroups}/hotpush-probe`]);
  spawnSync("rmdir", [`${cgroups}/hotpush-probe`]);
  return status === 0 ? false : "it starts a second systemd, which takes root";
}

/** Starts it in namespaces of its own, except for the network. It ends with the test. */
export function startSystemd(scope: Scope, { units, lines, prepare }: OwnSystemdOptions): OwnSystemd {
  const directory = temporaryDirectory(scope);
  const logPath = (unit: string) => join(directory, `${unit}.log`);
  const own = join(directory, "units");
  for (const unit of units) {
    mkdirSync(join(own, `${unit}.service.d`), { recursive: true });
    cpSync(join(checkout, `examples/systemd/${unit}.service`), join(own, `${unit}.service`));
    const service = [
      ...lines,
      `StandardOutput=append:${logPath(unit)}`,
      `StandardError=append:${logPath(unit)}`,
    ];
    const dropIn = ["[Unit]", "DefaultDependencies=no", "[Service]", ...service];
    writeFileSync(join(own, `${unit}.service.d/test.conf`), `${dropIn.join("\n")}\n`);
  }
  const wants = `Wants=${units.map((unit) => `${unit}.service`).join(" ")}`;
  writeFileSync(join(own, "hotpush-test.target"), `[Unit]\nDefaultDependencies=no\n${wants}\n`);
  const cgroup = `${cgroups}/hotpush-test-${process.pid}`;
  const script = [
    `mkdir ${cgroup} && echo $$ > ${cgroup}/cgroup.procs`,
    `exec unshare --kill-child -mpfuiC --propagation private sh -ec '${inside(directory, prepare)}'`,
  ];
  let printed = "";
  const child = spawn("sh", ["-ec", script.join("\n")], { stdio: ["ignore", "pipe", "pipe"] });
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      printed += text;
    });
  }
  scope.after(async () => {
    child.kill("SIGKILL");
    await new Promise((resolve) =>
      child.exitCode === null && child.signalCode === null ? child.once("exit", resolve) : resolve(null),
    );
    spawnSync("sh", [
      "-c",
      `for _ in 1 2 3 4 5 6 7 8 9; do find ${cgroup} -depth -type d -exec rmdir {} + 2>/dev/null; [ -e ${cgroup} ] || break; sleep 0.1; done`,
    ]);
  });
  const read = (unit: string) => (existsSync(logPath(unit)) ? readFileSync(logPath(unit), "utf8") : "");
  return {
    logOf: (unit) =>
      read(unit)
        .split("\n")
        .filter((line) => line.startsWith("{"))
        .map((line) => JSON.parse(line) as LogLine),
    output: () => [printed, ...units.map(read)].join("\n"),
  };
}

/** The settings of the machine's kernel stay as they are: systemd may not write them. */
function inside(directory: string, prepare: string): string {
  return `
    mount -t proc proc /proc
    mount --bind /proc/sys /proc/sys
    mount -o remount,ro,bind /proc/sys
    umount -R /sys/fs/cgroup
    mount -t cgroup2 cgroup2 /sys/fs/cgroup
    mount -t tmpfs -o mode=755 tmpfs /mnt
    mkdir /mnt/etc /mnt/work
    mount -t overlay -o lowerdir=/etc,upperdir=/mnt/etc,workdir=/mnt/work overlay /etc
    mount --bind ${directory}/units /etc/systemd/system
    for at in /run /opt /srv /var/lib /var/cache; do mount -t tmpfs -o mode=755 tmpfs $at; done
    mkdir /opt/hotpush
    mount --bind ${checkout} /opt/hotpush
    ln -s /dev/null /etc/systemd/system/network-online.target
    ${prepare}
    exec env -i container=other PATH=$PATH /lib/systemd/systemd --system --unit=hotpush-test.target \\
      --log-target=console --log-level=notice --show-status=0`;
}
