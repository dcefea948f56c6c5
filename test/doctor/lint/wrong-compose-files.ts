import type { Fault } from "../../../src/doctor/check.ts";
import type { ComposeService } from "../../../src/platform/compose/model.ts";
import { app, caddy, hotpush } from "./good-compose-file.ts";

/** A compose file with one fault, and what the check says. */
export interface Wrong {
  readonly check: string;
  readonly name: string;
  readonly services: Readonly<Record<string, ComposeService>>;
  readonly says: RegExp;
  readonly change: string;
  readonly severity?: Fault["severity"];
}

export const wrong: readonly Wrong[] = [
  {
    check: "lint-ports",
    name: "an app with a fixed port",
    services: { app: { ...app, ports: [{ published: "8080", target: 80 }] } },
    says: /^app publishes port 8080, so it is away while it is replaced/,
    change: "services.app.ports: remove 8080:80",
  },
  {
    check: "lint-ports",
    name: "Hotpush with a fixed port beside a proxy",
    services: { hotpush: { ...hotpush, ports: [{ published: "9000", target: 9000 }] } },
    says: /^hotpush publishes port 9000/,
    change: "services.hotpush.ports: remove 9000:9000",
  },
  {
    check: "lint-container-name",
    name: "an app with a container name",
    services: { app: { ...app, container_name: "shop" } },
    says: /^app has the container_name shop/,
    change: "services.app.container_name: remove shop",
  },
  {
    check: "lint-network",
    name: "an app in the host's network",
    services: { app: { ...app, network_mode: "host" } },
    says: /^app is in the network of host/,
    change: "services.app.network_mode: remove host",
  },
  {
    check: "lint-network",
    name: "an app with a fixed address",
    services: { app: { ...app, networks: { default: { ipv4_address: "10.0.0.5" } } } },
    says: /^app has the fixed address 10\.0\.0\.5/,
    change: "services.app.networks.default: remove the address 10.0.0.5",
  },
  {
    check: "lint-healthcheck",
    name: "an app without a health check",
    services: { app: { image: "shop-app", restart: "always", expose: ["8080"] } },
    says: /^app has no health check/,
    change:
      'services.app.healthcheck: {test: ["CMD", "curl", "-f", "http://localhost:8080/"], interval: 10s, start_period: 30s, start_interval: 500ms}',
  },
  {
    check: "lint-healthcheck",
    name: "an app whose health check is turned off",
    services: { app: { ...app, healthcheck: { disable: true } } },
    says: /^app has no health check/,
    change:
      'services.app.healthcheck: {test: ["CMD", "curl", "-f", "http://localhost:8080/"], interval: 10s, start_period: 30s, start_interval: 500ms}',
  },
  {
    check: "lint-live-file",
    name: "Caddy without the live files",
    services: { caddy: { ...caddy, volumes: [] } },
    says: /^caddy does not have the live files/,
    change: "services.caddy.volumes: add live:/run/live",
  },
  {
    check: "lint-live-file",
    name: "Hotpush without the live files",
    services: { hotpush: { ...hotpush, volumes: [] } },
    says: /^hotpush does not have the live files/,
    change: "services.hotpush.volumes: add live:/run/live",
  },
  {
    check: "lint-live-file",
    name: "Traefik, which watches Docker itself",
    services: { caddy: { ...caddy, image: "traefik:v3", volumes: [] } },
    says: /^caddy finds containers by itself, and reads no live file/,
    change: "services.app.labels: hotpush.rollout: scale",
  },
  {
    check: "lint-live-file",
    name: "a proxy that cannot read live files",
    services: { caddy: { ...caddy, image: "nginx:1.29", volumes: [] } },
    says: /^caddy \(nginx:1\.29\) cannot read which container is live/,
    change: "services.caddy.image: caddy:2",
  },
  {
    check: "lint-label",
    name: "an unknown way to roll out",
    severity: "problem",
    services: { app: { ...app, labels: { "hotpush.rollout": "rolling" } } },
    says: /"rolling", not live, scale or recreate: it is refused/,
    change: "services.app.labels: hotpush.rollout: live, scale or recreate",
  },
  {
    check: "lint-label",
    name: "an invalid time",
    severity: "problem",
    services: { app: { ...app, labels: { "hotpush.healthy-timeout": "90" } } },
    says: /"90", not a duration such as 90s/,
    change: "services.app.labels: hotpush.healthy-timeout: a duration such as 90s",
  },
  {
    check: "lint-label",
    name: "an invalid time to drain",
    severity: "problem",
    services: { app: { ...app, labels: { "hotpush.drain-timeout": "5 minutes" } } },
    says: /"5 minutes", not a duration such as 5m: it is refused/,
    change: "services.app.labels: hotpush.drain-timeout: a duration such as 5m",
  },
  {
    check: "lint-label",
    name: "a misspelt label",
    services: { app: { ...app, labels: { "hotpush.chek": "http://caddy/" } } },
    says: /the label hotpush\.chek, which does not exist/,
    change: "services.app.labels: remove hotpush.chek",
  },
  {
    check: "lint-volumes",
    name: "a database with a rolling replacement",
    severity: "problem",
    services: { db: { image: "postgres:17", restart: "always", labels: { "hotpush.rollout": "live" } } },
    says: /^db has data \(database postgres:17\), but with its label hotpush\.rollout=live two containers/,
    change: "services.db.labels: hotpush.rollout: recreate",
  },
  {
    check: "lint-volumes",
    name: "a database that only its directory shows",
    severity: "problem",
    services: {
      db: {
        image: "acme/sql",
        restart: "always",
        labels: { "hotpush.rollout": "live" },
        volumes: [{ type: "volume", source: "db", target: "/home/postgres/pgdata/data" }],
      },
    },
    says: /^db has data \(data directory \/home\/postgres\/pgdata\/data\), but with its label hotpush\.rollout=live two containers/,
    change: "services.db.labels: hotpush.rollout: recreate",
  },
  {
    check: "lint-volumes",
    name: "an app with a database file",
    services: { app: { ...app, volumes: [{ type: "volume", source: "data", target: "/data" }] } },
    says: /^app has the volume \/data: during a roll-out, two containers write to it for some seconds/,
    change: "services.app.labels: hotpush.rollout: recreate",
  },
  {
    check: "lint-depends-on",
    name: "an app that does not wait for its database's health",
    services: {
      app: { ...app, depends_on: { db: { condition: "service_started" } } },
      db: { image: "postgres:17", restart: "always", healthcheck: {} },
    },
    says: /^app does not wait until db is healthy/,
    change: "services.app.depends_on.db.condition: service_healthy",
  },
  {
    check: "lint-stop-grace",
    name: "an app behind a watching proxy that is killed early",
    services: { app: { ...app, labels: { "hotpush.rollout": "scale" } } },
    says: /^app has 10 s to finish its requests/,
    change: "services.app.stop_grace_period: 30s",
  },
  {
    check: "lint-stop-grace",
    name: "a Hotpush that is killed before its grace is over",
    services: { hotpush: { ...hotpush, stop_grace_period: "5s" } },
    says: /^Docker kills hotpush 5 s after .+ SHUTDOWN_GRACE takes up to 9 s/,
    change: "services.hotpush.stop_grace_period: 9s",
  },
  {
    check: "lint-restart",
    name: "an app that stays away after a reboot",
    services: { app: { ...app, restart: "on-failure" } },
    says: /^app does not start again after a crash or a reboot/,
    change: "services.app.restart: unless-stopped",
  },
  {
    check: "restart",
    name: "a Hotpush that stays away after a reboot",
    severity: "problem",
    services: { hotpush: { ...hotpush, restart: "no" } },
    says: /^The compose service hotpush has no restart policy/,
    change: "services.hotpush.restart: unless-stopped",
  },
];
