import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makePlace, placeEnvironment, runDoctor } from "../harness/doctor.ts";
import { inOwnEtc } from "../harness/mounts.ts";
import { giveTo, makeSharedMachine } from "../harness/owners.ts";
import { needs } from "../harness/requirements.ts";
import { writeScript } from "../harness/temporary.ts";

test(
  "root never runs the compose plugin of an owner: the doctor asks as that user",
  needs("mount", "otherUser"),
  async (t) => {
    const machine = makeSharedMachine(t);
    const alice = machine.addOwner("alice", "true");
    const plugins = join(alice.home, ".docker/cli-plugins");
    const ranPath = join(machine.root, "ran");
    mkdirSync(plugins, { recursive: true });
    writeScript(join(plugins, "docker-compose"), `#!/bin/sh\nid -u >>${ranPath}\necho 2.30.0\n`);
    giveTo(alice, alice.home);
    writeFileSync(join(alice.repoPath, "compose.yaml"), "services: {}\n");
    giveTo(alice, alice.repoPath);
    writeFileSync(ranPath, "", { mode: 0o622 });
    chmodSync(ranPath, 0o622);
    // As Docker does, which looks into the home first.
    const bin = join(machine.root, "bin");
    mkdirSync(bin);
    writeScript(
      join(bin, "docker"),
      '#!/bin/sh\nshift\nexec "$HOME/.docker/cli-plugins/docker-compose" "$@"\n',
    );
    const place = makePlace(t);
    const { PATH } = placeEnvironment(place);
    const known = `echo alice:x:${alice.uid}:${alice.uid}::${alice.home}:/bin/sh >>/etc/passwd`;
    await runDoctor(place, {
      args: ["--json"],
      env: {
        PATH: `${bin}:${PATH}`,
        PROJECTS_PATH: machine.projectsPath,
        SECRETS_PATH: machine.secretsPath,
        STATE_PATH: machine.statePath,
      },
      wrapper: inOwnEtc(t, [known]),
      directory: "/",
    });
    const ran = readFileSync(ranPath, "utf8").split("\n").filter(Boolean);
    assert.deepEqual([...new Set(ran)], [String(alice.uid)]);
  },
);
