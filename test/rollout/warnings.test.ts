import assert from "node:assert/strict";
import { test } from "node:test";
import type { Container } from "../../src/platform/docker/container.ts";
import { tellUnhealthy } from "../../src/rollout/warnings.ts";
import { sampleContainer, sampleService } from "./sample.ts";

const database = sampleService({ name: "db", replacement: { how: "recreate", reason: "database" } });

test("a database that is as it should be but sick is told, with where to look", () => {
  assert.deepEqual(told(database, { health: "unhealthy" }), [
    "is as it should be, but not healthy (unhealthy). See: docker logs shop-app-1",
  ]);
});

test("one that is healthy is not told, nor one without a health check", () => {
  assert.deepEqual(told(database, { health: "healthy" }), []);
  assert.deepEqual(told(database, { health: null }), []);
});

test("a migration that has ended is not told, whatever its health was", () => {
  const migration = sampleService({ replacement: { how: "run-once" } });
  assert.deepEqual(told(migration, { status: "exited", health: "unhealthy" }), []);
});

function told(service: typeof database, differences: Partial<Container>): readonly string[] {
  const texts: string[] = [];
  const report = (event: { readonly event: string; readonly text?: string }) => texts.push(event.text ?? "");
  tellUnhealthy({ report }, service, [sampleContainer(differences)]);
  return texts;
}
