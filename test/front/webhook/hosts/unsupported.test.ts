import assert from "node:assert/strict";
import { test } from "node:test";
import { asReceived, hostNamed, loadDeliveries, testDeliveries } from "./fixtures.ts";

const azureDevops = hostNamed("azure-devops");
const gitee = hostNamed("gitee");
const onedev = hostNamed("onedev");
const sourcehut = hostNamed("sourcehut");

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

test("the header that carries OneDev's secret is not taken for the name of its event", () => {
  assert.equal(onedev.eventHeader, null);
});
