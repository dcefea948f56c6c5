import assert from "node:assert/strict";
import { test } from "node:test";
import { advicesIn } from "./advices.ts";

test("the commands of an output are found, as they are typed", () => {
  const output = [
    "It does not run. Start it: docker compose --project-directory /etc/hotpush up --detach. If it stops, see: docker logs a-1",
    "Wait for its end (hotpush logs -f 3) or cancel it (hotpush cancel 3), and run this again.",
    "Next:",
    "  docker compose up -d",
    "  cd /srv/shop && docker compose down",
    "The page of hotpush is there. docker is too.",
  ].join("\n");
  assert.deepEqual(advicesIn(output), [
    "docker compose --project-directory /etc/hotpush up --detach",
    "docker logs a-1",
    "hotpush logs -f 3",
    "hotpush cancel 3",
    "docker compose up -d",
    "cd /srv/shop && docker compose down",
  ]);
});
