import assert from "node:assert/strict";
import { test } from "node:test";
import { machineComposeFile, withCaddyPort, withCheckoutPath } from "../../src/machine-part/compose-file.ts";
import { renewedComposeFile } from "../../src/machine-part/renewed-compose-file.ts";

const usual = machineComposeFile(["/srv", "/home"]);

test("a compose file of the same version stays as it is", () => {
  assert.equal(renewedComposeFile(usual), usual);
});

test("checkouts and ports that were added for projects stay", () => {
  const added = withCaddyPort(withCheckoutPath(usual, "/data/shop", false), 8081, "127.0.0.1");
  assert.equal(
    renewedComposeFile(added),
    withCaddyPort(machineComposeFile(["/srv", "/home", "/data/shop"]), 8081, "127.0.0.1"),
  );
  const readOnly = withCheckoutPath(usual, "/mirror/shop.git", true);
  assert.equal(renewedComposeFile(readOnly), readOnly);
});

test("the text of an earlier version is replaced by that of this one", () => {
  assert.equal(renewedComposeFile(usual.replace("cap_drop: [ALL]", "cap_drop: [NET_RAW]")), usual);
});
