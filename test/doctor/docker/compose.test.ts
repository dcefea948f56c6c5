import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { standInForDocker } from "../../harness/docker-stand-in.ts";
import { makePlace, probe } from "../../harness/doctor.ts";

test("docker-socket, docker-engine, compose: skipped without a compose file", async (t) => {
  const place = makePlace(t);
  for (const id of ["docker-socket", "docker-engine", "compose", "compose-file", "lint-ports"]) {
    assert.equal((await probe(place, id)).outcome, "skipped", id);
  }
});

test("compose: a missing or old one is found, with the packages that have it", async (t) => {
  const place = makePlace(t);
  const outcomeOf = async (version?: string) =>
    probe(
      place,
      "compose",
      standInForDocker(place, version === undefined ? {} : { composeVersion: version }),
    );
  const missing = await outcomeOf();
  assert.match(missing.faults[0]?.text ?? "", /docker compose does not work/);
  assert.match(missing.faults[0]?.command ?? "", /^apt-get install -y docker-compose-plugin \|\|/);
  for (const version of ["2.6.0", "v2.23.3-desktop.1"]) {
    assert.match((await outcomeOf(version)).faults[0]?.text ?? "", /hotpush rollout needs 2\.24\.4/, version);
  }
  for (const version of ["2.24.4", "v2.40.3", "2.26.1-4", "5.0.0"])
    assert.equal((await outcomeOf(version)).outcome, "ok", version);
});

test("compose-file: a file that compose refuses is reported in its words", async (t) => {
  const place = makePlace(t);
  const run = standInForDocker(place, { composeVersion: "2.40.0" });
  writeFileSync(
    join(place.root, "bin/docker"),
    '#!/bin/sh\ncase "$*" in *version*) echo 2.40.0 ;; *) echo "services.app: image is missing" >&2; exit 15 ;; esac\n',
  );
  const found = await probe(place, "compose-file", run);
  assert.match(
    found.faults[0]?.text ?? "",
    /^docker compose cannot read the project: services\.app: image is missing$/,
  );
  assert.match(found.faults[0]?.command ?? "", /^docker compose --project-directory \S+app config --quiet$/);
});
