import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../../src/platform/docker/container.ts";
import { warnIfUnhealthy } from "../../../src/rollout/steps/bring-up-to-date.ts";
import { sampleContainer, sampleService } from "../sample.ts";

const database = sampleService({ name: "db", replacement: { how: "recreate", reason: "database" } });

test("warns about an up-to-date but unhealthy database, with its log command", () => {
  assert.deepEqual(told(database, { health: "unhealthy" }), [
    "is as it should be, but not healthy (unhealthy). See: docker logs shop-app-1",
  ]);
});

test("does not warn about a healthy container, or one without a health check", () => {
  assert.deepEqual(told(database, { health: "healthy" }), []);
  assert.deepEqual(told(database, { health: null }), []);
});

test("does not warn about a migration that has ended, whatever its health", () => {
  const migration = sampleService({ replacement: { how: "run-once" } });
  assert.deepEqual(told(migration, { status: "exited", health: "unhealthy" }), []);
});

function told(service: typeof database, differences: Partial<Container>): readonly string[] {
  const texts: string[] = [];
  const report = (event: { readonly event: string; readonly text?: string }) => texts.push(event.text ?? "");
  warnIfUnhealthy({ report, service }, [sampleContainer(differences)]);
  return texts;
}
