import assert from "node:assert/strict";
import { chmodSync, rmSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { makePlace, probe, setSettings, testBroken } from "../harness/doctor.ts";

testBroken([
  {
    name: "no settings at all, in a checkout",
    check: "configuration",
    breakIt: ({ envFile }) => rmSync(envFile),
  },
  {
    name: "a short secret",
    check: "configuration",
    severity: "warning",
    breakIt: (place) => setSettings(place, { WEBHOOK_SECRET: "hunter2" }),
  },
  {
    name: "a secret in a file that is not there",
    check: "configuration",
    breakIt: (place) =>
      setSettings(place, { WEBHOOK_SECRET: "", WEBHOOK_SECRET_FILE: join(place.home, "a b") }),
  },
  {
    name: "others may read the settings",
    check: "secret-files",
    breakIt: ({ envFile }) => chmodSync(envFile, 0o644),
  },
]);

test("all faults of the settings are reported together, and no command takes a setting away", async (t) => {
  const place = makePlace(t);
  const faulty = {
    ALLOWED_SIGNERS: "signers",
    DEPLOY_TIMEOUT: "30",
    REPOSITORY: "shop",
    WEBHOOK_PORT: "70000",
  };
  setSettings(place, { ...faulty, WEBHOOK_SECRET: "" });
  const { faults } = await probe(place, "configuration");
  const found = faults.map(({ text, command }) => [/^\w+/.exec(text)?.[0], command !== null]);
  assert.deepEqual(found.sort(), [
    ...["ALLOWED_SIGNERS", "DEPLOY_TIMEOUT", "REPOSITORY", "WEBHOOK_PORT"].map((name) => [name, false]),
    ["WEBHOOK_SECRET", true],
  ]);
});

test("a value in the environment wins over the file, and no command claims to change it", async (t) => {
  const place = makePlace(t);
  const found = await probe(place, "configuration", { env: { WEBHOOK_SECRET: "hunter2" } });
  assert.deepEqual(
    found.faults.map(({ command, change }) => [command, change]),
    [
      [
        null,
        'WEBHOOK_SECRET="$(openssl rand -hex 32)" in the environment of the service, which wins over its file',
      ],
    ],
  );
});
