import "../harness/environment.ts";
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import fc from "fast-check";
import { isSshDestination, remoteCommandLine } from "../../src/platform/ssh.ts";

test("the shell of a server takes a command line apart into the very words", () => {
  const word = fc.string({ unit: "grapheme" }).map((text) => text.replaceAll("\0", ""));
  fc.assert(
    fc.property(fc.array(word, { maxLength: 5 }), (words) => {
      const line = remoteCommandLine(["printf", "%s\\0", ...words]);
      const printed = execFileSync("sh", ["-c", line], { encoding: "utf8" });
      assert.deepEqual(printed, [...(words.length === 0 ? [""] : words), ""].join("\0"));
    }),
    { numRuns: 100 },
  );
});

test("what ssh would take for an option or a command is no destination", () => {
  const good = ["root@203.0.113.5", "shop", "ssh://ada@host:2222"];
  const bad =
    "-oProxyCommand=x|root@-oProxyCommand=x|-v|ssh://-oProxyCommand=x|a b||root@|root@host;id|root@$(id)|root@host\nid|`id`|ssh://root@host/x|host:2222";
  assert.deepEqual([...good, ...bad.split("|")].filter(isSshDestination), good);
});
