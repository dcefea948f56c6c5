import assert from "node:assert/strict";
import { test } from "node:test";
import { gitHosts, unknownHost } from "../../../src/receiver/git-hosts.ts";
import type { JsonObject } from "../../../src/receiver/push.ts";
import { mainRefs } from "../../../src/receiver/push.ts";
import { selectPush } from "../../../src/receiver/select-push.ts";
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
