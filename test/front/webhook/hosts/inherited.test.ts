import assert from "node:assert/strict";
import { test } from "node:test";
import type { JsonObject } from "../../../../src/deployments/push.ts";
import { mainRefs } from "../../../../src/deployments/push.ts";
import { gitHosts, unknownHost } from "../../../../src/front/webhook/git-hosts.ts";
import { selectPush } from "../../../../src/front/webhook/select-push.ts";
import { eventOf, loadDeliveries, payloadOf } from "./fixtures.ts";

for (const host of [...gitHosts, unknownHost]) {
  test(`${host.name}: what is inherited, or named __proto__, is not read`, () => {
    for (const delivery of loadDeliveries(host.name)) {
      if (delivery.expect.reading === null) continue;
      const payload = payloadOf(delivery);
      const parsed: JsonObject = JSON.parse(`{"__proto__": ${delivery.body}}`);
      for (const hollow of [Object.create(payload), parsed])
        assert.notEqual(
          selectPush(host.read(eventOf(host, delivery), hollow), { repository: null, refs: mainRefs }).kind,
          "push",
        );
    }
  });
}
