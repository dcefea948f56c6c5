import assert from "node:assert/strict";
import { test } from "node:test";
import type { DeploymentJson } from "../../src/calls/shapes.ts";
import { commitText, originText } from "../../src/cli/deployment-text.ts";

const ada = { name: "ada", reported: true } as const;
const deployment = {
  state: "succeeded",
  trigger: "push",
  commit: "a".repeat(40),
  checkedOutCommit: "b".repeat(40),
  subject: "Fix the cart  Ada, pushed by ada",
  author: "Eve, pushed by ada",
  pusher: { name: "eve" },
  requestedBy: null,
  cancelledBy: null,
} as DeploymentJson;

const asked = { subject: "Fix", author: "Eve", pusher: null, requestedBy: ada };

test("no subject and no author's name can pass for a pusher, and a reported name says so", () => {
  const rows = [
    [{}, "Fix the cart Ada, pushed by ada  Eve pushed by ada, pushed by eve"],
    [asked, "Fix  Eve, deployed by ada (reported)"],
    [{ ...asked, trigger: "rollback" }, "Fix  Eve, rolled back by ada (reported)"],
    [
      { ...asked, requestedBy: null, state: "cancelled", cancelledBy: ada },
      "Fix  Eve, cancelled by ada (reported)",
    ],
  ] as const;
  for (const [given, text] of rows) assert.equal(originText({ ...deployment, ...given }, 80), text);
});

test("the longest texts are cut, the subject before the names", () => {
  const long = {
    ...deployment,
    subject: "Fix ".repeat(60),
    author: "Ada ".repeat(30),
    pusher: { name: "Mara ".repeat(40) },
  };
  const text = originText(long as DeploymentJson, 70);
  assert.ok(text.length <= 70 && /^Fix Fix .+ {2}Ada Ada .+, pushed by Mara Mara/.test(text), text);
});

test("a commit that the branch had passed is shown beside the deployed one", () => {
  assert.equal(commitText(deployment), "bbbbbbb (instead of aaaaaaa)");
  assert.equal(commitText({ ...deployment, checkedOutCommit: null }), "aaaaaaa");
});
