import assert from "node:assert/strict";
import { test } from "node:test";
import { hotpushServiceOf } from "../../../src/doctor/service/own-service.ts";

const environment = { WEBHOOK_SECRET: "x" };
const volumes = [{ type: "bind", source: "/var/run/docker.sock", target: "/var/run/docker.sock" }];

test("an app that reads the same .env is not taken for Hotpush", () => {
  const services = { app: { environment }, deployer: { environment, volumes } };
  assert.equal(hotpushServiceOf({ name: "shop", services })?.name, "deployer");
  assert.equal(
    hotpushServiceOf({ name: "shop", services: { app: { environment }, hotpush: { environment } } })?.name,
    "hotpush",
  );
});

test("without a webhook secret there is no Hotpush among the services", () => {
  assert.equal(hotpushServiceOf({ name: "shop", services: { app: {}, hotpush: { volumes } } }), null);
});
