import assert from "node:assert/strict";
import { test } from "node:test";
import { type Network, readProject, refuseOtherHome } from "../../src/rollout/project.ts";
import { isProblem } from "../harness/problems.ts";
import { sampleContainer } from "./sample.ts";

const network: Network = { key: "default", name: "n1_default", definition: { name: "n1_default", ipam: {} } };

test("the networks of a service are those that compose makes, not external ones", () => {
  const services = { app: { networks: { default: null, outer: null } } };
  const networks = {
    default: network.definition as { name: string },
    outer: { name: "outer", external: true },
  };
  const [app] = readProject({ name: "n1", services, networks }).services;
  assert.deepEqual(app?.networks, [network]);
});

const place = { home: "/root", projectDirectory: "/root/shop" };
const target = "/var/lib/postgresql/data";

test("a directory that was in another home is refused, with the line to write", () => {
  const text =
    /^db has \/home\/me\/pgdata at \S+, and by the compose file it would be \/root\/pgdata: .* Write the whole path: \/home\/me\/pgdata:\/var/;
  assert.throws(() => ask("/root/pgdata", "/home/me/pgdata"), isProblem("compose_invalid", text));
});

test("only a directory that lay in another home is another one", () => {
  ask("/root/pgdata", "/root/pgdata");
  ask("/srv/pgdata", "/home/me/pgdata");
  ask("/root/shop/data", "/home/me/shop/data"); // It has moved with the project.
  ask("/root/data-17", "/root/data-16"); // Somebody has chosen it.
  refuseOtherHome(model("/root/pgdata"), place, []);
});

function ask(source: string, there: string): void {
  const mounts = [{ type: "bind", name: "", source: there, target }];
  refuseOtherHome(model(source), place, [sampleContainer({ service: "db", mounts })]);
}

function model(source: string) {
  return { name: "shop", services: { db: { volumes: [{ type: "bind", source, target }] } } };
}
