import assert from "node:assert/strict";
import { test } from "node:test";
import { parsePlace } from "../../src/setup/served.ts";

for (const [text, service, port, place] of [
  ["admin=admin.example.org", "admin", null, { kind: "name", name: "admin.example.org" }],
  ["admin:3000=Admin.Example.org", "admin", 3000, { kind: "name", name: "admin.example.org" }],
  ["admin=https://admin.example.org/", "admin", null, { kind: "name", name: "admin.example.org" }],
  ["my_admin.ui=:8081", "my_admin.ui", null, { kind: "port", port: 8081 }],
  ["db:9200=none", "db", 9200, { kind: "none" }],
] as const) {
  test(`--at ${text} is read`, () => {
    assert.deepEqual(parsePlace(text), { service, port, place });
  });
}

for (const text of [
  "",
  "admin",
  "admin=",
  "=:80",
  "admin=:0",
  "admin=:65536",
  "admin=a b",
  "admin=-x.org",
  "admin=1.2.3.4",
]) {
  test(`--at ${JSON.stringify(text)} is rejected`, () => {
    assert.equal(parsePlace(text), null);
  });
}
