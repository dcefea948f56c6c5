import assert from "node:assert/strict";
import { test } from "node:test";
import { refuseOtherHome } from "../../../src/rollout/compose/refuse-other-home.ts";
import { isProblem } from "../../harness/is-problem.ts";
import { sampleContainer } from "../sample.ts";

const place = { home: "/root", projectDirectory: "/root/shop" };
const target = "/var/lib/postgresql/data";

test("a directory that was in another home is refused, with the line to write", () => {
  const text =
    /^db has \/home\/me\/pgdata at \S+, and by the compose file it would be \/root\/pgdata: .* Write the whole path: \/home\/me\/pgdata:\/var/;
  assert.throws(() => ask("/root/pgdata", "/home/me/pgdata"), isProblem("compose_invalid", text));
});

for (const [what, source, there] of [
  ["the same directory", "/root/pgdata", "/root/pgdata"],
  ["a directory outside of any home", "/srv/pgdata", "/home/me/pgdata"],
  ["a directory of the project, which has moved", "/root/shop/data", "/home/me/shop/data"],
  ["another directory at home, which somebody has chosen", "/root/data-17", "/root/data-16"],
] as const) {
  test(`${what} is no other home`, () => ask(source, there));
}

test("on the first start there is nothing to lose", () => {
  refuseOtherHome(model("/root/pgdata"), place, []);
});

function ask(source: string, there: string): void {
  const mounts = [{ type: "bind", name: "", source: there, target }];
  refuseOtherHome(model(source), place, [sampleContainer({ service: "db", mounts })]);
}

function model(source: string) {
  return { name: "shop", services: { db: { volumes: [{ type: "bind", source, target }] } } };
}
