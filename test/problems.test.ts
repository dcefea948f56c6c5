import assert from "node:assert/strict";
import { test } from "node:test";
import { problems } from "../src/problems.ts";

test("no status of a problem makes a git host give up or follow a redirect", () => {
  const statuses = Object.values(problems).flatMap((entry) => ("status" in entry ? [entry.status] : []));
  assert.deepEqual(
    statuses.filter((status: number) => status < 400 || [410, 429, 502, 504].includes(status)),
    [],
  );
});
