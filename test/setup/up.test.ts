import assert from "node:assert/strict";
import { test } from "node:test";
import { readPageLink } from "../../src/setup/up.ts";

const page = new URL("https://hotpush.example.com");

test("the browser opens the page that was agreed on, and nothing else that a server names", () => {
  const url = "https://hotpush.example.com/sign-in#token";
  assert.equal(readPageLink(JSON.stringify({ url }), page), url);
  for (const said of [
    "file:///etc/passwd",
    "http://hotpush.example.com/",
    "https://hotpush.example.com:8443/",
    "https://hotpush.example.com.evil.test/",
    "https://hotpush.example.com@evil.test/",
    "--help",
    "/Applications/Calculator.app",
    "",
    7,
  ])
    assert.throws(
      () => readPageLink(JSON.stringify({ url: said }), page),
      { name: "CommandError" },
      String(said),
    );
  for (const answer of ["", "null", "{", "[]"])
    assert.throws(() => readPageLink(answer, page), { name: "CommandError" }, answer);
});
