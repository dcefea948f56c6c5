import assert from "node:assert/strict";
import { test } from "node:test";
import { describeMove, describeMoved } from "../../../src/init/move/describe-move.ts";
import type { OldSetup } from "../../../src/init/move/old-setup.ts";
import type { Container } from "../../../src/platform/docker/container.ts";

const container = (name: string) => ({ name }) as Container;
const old: OldSetup = {
  root: "/srv/shop",
  composeProject: "shop",
  hotpush: container("shop-hotpush-1"),
  caddy: container("shop-caddy-1"),
  ports: [
    { port: 80, address: "" },
    { port: 443, address: "" },
  ],
  volumes: ["shop_hotpush-state"],
  settings: { DEPLOY_TIMEOUT: "10m", WEBHOOK_SECRET_PREVIOUS: "old" },
  scriptEnv: "TOKEN=1\n",
};

test("the gap, the containers and the webhook are named beforehand", () => {
  const text = describeMove(old, "shop").join("\n");
  assert.match(text, /takes over 80 and 443, nothing answers there, for at most 3 s/);
  assert.match(text, /Stopped and removed at the end: shop-hotpush-1, shop-caddy-1\./);
  assert.match(text, /Nothing changes at the git host/);
  assert.match(text, /Kept: the volumes shop_hotpush-state\./);
});

test("without a Caddy that runs there is no gap to speak of", () => {
  const gone = { ...old, caddy: null, hotpush: null, volumes: [] };
  assert.doesNotMatch(describeMove(gone, "shop").join("\n"), /takes over|removed|volumes/);
});

test("afterwards the gap is said as measured, and where settings are now", () => {
  const text = describeMoved(old, { project: "shop", gapMs: 812, imported: 7 }).join("\n");
  assert.match(text, /with its history: 7 deployments\. The ports changed hands in 0\.8 s\./);
  assert.match(text, /DEPLOY_TIMEOUT count in projects\/shop\.env now/);
  assert.match(text, /hotpush\.env counts in secrets\/shop\.env now/);
  assert.match(text, /docker volume rm shop_hotpush-state/);
});
