import assert from "node:assert/strict";
import { test } from "node:test";
import { azureDevops } from "../../../src/receiver/hosts/azure-devops.ts";
import { gitee } from "../../../src/receiver/hosts/gitee.ts";
import { onedev } from "../../../src/receiver/hosts/onedev.ts";
import { sourcehut } from "../../../src/receiver/hosts/sourcehut.ts";
import { asReceived, loadDeliveries, testDeliveries } from "./fixtures.ts";

for (const host of [azureDevops, gitee, onedev, sourcehut]) {
  testDeliveries(host);

  test(`${host.name}: the help names the host and does not repeat what was sent`, () => {
    for (const delivery of loadDeliveries(host.name)) {
      const claim = host.claimSignature(asReceived(delivery.headers));
      assert(claim.kind === "unsupported");
      assert.match(claim.help.toLowerCase(), new RegExp(`^${host.name.replace("-", " ")} `));
      assert(!claim.help.includes(delivery.secret));
    }
  });
}

test("Gitee without a token has no signature to speak of", () => {
  assert.deepEqual(gitee.claimSignature({ "x-gitee-event": "Push Hook" }), { kind: "missing" });
});

test("the header that carries OneDev's secret is not taken for the name of its event", () => {
  assert.equal(onedev.eventHeader, null);
});
