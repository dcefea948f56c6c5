import assert from "node:assert/strict";
import { test } from "node:test";
import { commitLink, compareLink } from "../../../src/front/page/screens/words.ts";

const from = "a".repeat(40);
const to = "b".repeat(40);

test("each git host has its own path for a commit and a change", () => {
  for (const [webUrl, host, commit, change] of [
    ["https://github.com/o/r", "github", `commit/${to}`, `compare/${from}...${to}`],
    ["https://git.example.org/o/r", "gitea", `commit/${to}`, `compare/${from}...${to}`],
    ["https://git.example.org/o/r", "gitlab", `-/commit/${to}`, `-/compare/${from}...${to}`],
    ["https://gitlab.com/o/r", null, `-/commit/${to}`, `-/compare/${from}...${to}`],
    ["https://bitbucket.org/o/r", "bitbucket-cloud", `commits/${to}`, `branches/compare/${to}%0D${from}`],
  ] as const) {
    assert.equal(commitLink({ webUrl }, { host }, to), `${webUrl}/${commit}`);
    assert.equal(compareLink({ webUrl }, { host }, { from, to }), `${webUrl}/${change}`);
  }
});

test("without an address, without a change, and with a commit that is none, there is no link", () => {
  const webUrl = "https://github.com/o/r";
  const host = "github";
  assert.equal(commitLink({ webUrl: null }, { host }, to), null);
  assert.equal(commitLink({ webUrl }, { host }, "main?x=<"), null);
  assert.equal(compareLink({ webUrl }, { host }, { from: to, to }), null);
  assert.equal(compareLink({ webUrl }, { host }, { from: "../../x", to }), null);
  assert.equal(compareLink({ webUrl }, { host: "pagure" }, { from, to }), null);
});
