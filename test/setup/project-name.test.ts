import assert from "node:assert/strict";
import { test } from "node:test";
import { chooseProjectName } from "../../src/setup/project.ts";

const alone = { given: null, known: null, others: new Map<string, string>() };
const taken = new Map([["shop", "/srv/other/shop"]]);

for (const [path, name] of [
  ["octo/shop", "shop"],
  ["octo/My_Shop.io", "my-shop-io"],
  ["octo/hotpush", "octo-hotpush"],
  [`octo/${"long-".repeat(20)}`, "long-long-long-long-long-long-long-long"],
  ["/srv/my shop", "my-shop"],
] as const) {
  test(`${path.slice(0, 30)} becomes the project ${name}`, () => {
    assert.equal(chooseProjectName({ ...alone, path }), name);
  });
}

test("if another checkout has the name, the owner is part of it", () => {
  assert.equal(chooseProjectName({ ...alone, path: "octo/shop", others: taken }), "octo-shop");
});

test("a checkout keeps its name", () => {
  assert.equal(chooseProjectName({ ...alone, path: "octo/shop", known: "store", others: taken }), "store");
});

for (const [what, given, reason] of [
  ["that another checkout has", "shop", /shop is the project in \/srv\/other\/shop\. Choose another name/],
  ["of the server itself", "caddy", /caddy is a name of the server/],
] as const) {
  test(`a given name ${what} is refused`, () => {
    assert.throws(() => chooseProjectName({ ...alone, path: "octo/shop", given, others: taken }), reason);
  });
}

test("another name for a project that has one is refused", () => {
  const options = { ...alone, path: "octo/shop", known: "shop", given: "store" };
  assert.throws(() => chooseProjectName(options), /is the project shop already.*hotpush remove shop/);
});
