import type { ComposeModel, ComposeService } from "../../../src/platform/compose/model.ts";

export const app: ComposeService = {
  image: "shop-app",
  restart: "unless-stopped",
  expose: ["8080"],
  healthcheck: { interval: "10s" },
};
export const live = { type: "volume", source: "live", target: "/run/live" };
export const caddy: ComposeService = {
  image: "caddy:2",
  restart: "unless-stopped",
  ports: [{ published: "443", target: 443 }],
  volumes: [live],
};
export const hotpush: ComposeService = {
  image: "hotpush",
  restart: "unless-stopped",
  environment: { WEBHOOK_SECRET: "s" },
  volumes: [live],
};
/** A project like that of the examples. */
export const good: ComposeModel = { name: "shop", services: { app, caddy, hotpush } };
