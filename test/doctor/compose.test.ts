import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { standInForDocker } from "../harness/docker-stand-in.ts";
import { look, makePlace } from "../harness/doctor.ts";

test("docker-socket, docker-engine, compose: without a compose file nobody needs Docker", async (t) => {
  const place = makePlace(t);
  for (const id of ["docker-socket", "docker-engine", "compose", "compose-file", "lint-ports"]) {
    assert.equal((await look(place, id)).outcome, "skipped", id);
  }
});

test("compose: missing and old are told, with the packages that bring it", async (t) => {
  const place = makePlace(t);
  const outcomeOf = async (version?: string) =>
    look(place, "compose", standInForDocker(place, version === undefined ? {} : { composeVersion: version }));
  const missing = await outcomeOf();
  assert.match(missing.faults[0]?.text ?? "", /docker compose does not work/);
  assert.match(missing.faults[0]?.command ?? "", /^apt-get install -y docker-compose-plugin \|\|/);
  for (const version of ["2.6.0", "v2.23.3-desktop.1"]) {
    assert.match((await outcomeOf(version)).faults[0]?.text ?? "", /hotpush rollout needs 2\.24\.4/, version);
  }
  for (const version of ["2.24.4", "v2.40.3", "2.26.1-4", "5.0.0"])
    assert.equal((await outcomeOf(version)).outcome, "ok", version);
});

test("compose-file: what compose cannot read is told in its words", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  writeFileSync(
    join(place.root, "bin/docker"),
    '#!/bin/sh\ncase "$*" in *version*) echo 2.40.0 ;; *) echo "services.app: image is missing" >&2; exit 15 ;; esac\n',
  );
  const told = await look(place, "compose-file", run);
  assert.match(
    told.faults[0]?.text ?? "",
    /^docker compose cannot read the project: services\.app: image is missing$/,
  );
  assert.match(told.faults[0]?.command ?? "", /^docker compose --project-directory \S+app config --quiet$/);
});
