import { imagePattern } from "../../platform/compose/image-names.ts";

/**
 * What an HTTP port is for.
 * - `page`: people visit it; the main service of a project is one of these.
 * - `dashboard`: people visit it, but beside an app it is not the main one.
 * - `tool`: it shows another service of the project: its mail, its database, its queue.
 * - `machine`: programs call it, and know its port. It stays published.
 */
export const uses = ["page", "dashboard", "tool", "machine"] as const;
export type Use = (typeof uses)[number];

/** What is known of an image. */
export interface KnownImage {
  readonly use: Use;
  /** The ports of its containers that speak HTTP, the most important first. Its other ports do not. */
  readonly http: readonly number[];
  /** What it is, or what its other ports are for. */
  readonly reason: string;
}

type Row = readonly [use: Use, names: string, http: readonly number[], reason: string];

const rows: readonly Row[] = [
  ["page", "wordpress:[^:]*fpm.* nextcloud:[^:]*fpm.* php:[^:]*fpm.* php-fpm phpfpm", [], "FastCGI"],
  [
    "page",
    "wordpress drupal joomla mediawiki matomo mautic moodle bookstack nextcloud",
    [80, 8080],
    "a site in PHP",
  ],
  ["page", "nginx httpd php:[^:]*apache.*", [80, 8080], "a web server"],
  ["page", "ghost", [2368], "a blog"],
  ["page", "gitea forgejo gogs", [3000], "a git server; 22 and 2222 are ssh"],
  ["page", "gitlab-ce gitlab-ee", [80], "a git server; 22 is ssh"],
  ["page", "mastodon", [3000], "a social network"],
  ["page", "mastodon-streaming", [4000], "a social network"],
  ["page", "discourse", [3000, 80], "a forum"],
  ["page", "peertube", [9000], "video; 1935 is RTMP"],
  ["page", "synapse", [8008], "a chat server; 8448 is TLS"],
  [
    "page",
    "mattermost-team-edition mattermost-enterprise-edition",
    [8065],
    "a chat server; 8443 is for calls",
  ],
  ["page", "plausible/analytics community-edition umami listmonk", [8000, 3000, 9000], "a web app"],
  ["page", "n8n", [5678], "a web app"],
  ["page", "immich-server", [2283, 3001], "photos"],
  ["page", "photoprism", [2342], "photos"],
  ["page", "paperless-ngx", [8000], "documents"],
  ["page", "jellyfin emby embyserver", [8096], "a media server; 8920 is TLS, 1900 and 7359 announce it"],
  ["page", "pms-docker plex", [32400], "a media server"],
  ["page", "audiobookshelf filebrowser freshrss ntfy gotify element-web", [80], "a web app"],
  ["page", "navidrome", [4533], "a web app"],
  ["page", "calibre-web", [8083], "a web app"],
  ["page", "vaultwarden/server", [80, 3012], "passwords"],
  ["page", "uptime-kuma", [3001], "a status page"],
  ["page", "outline", [3000], "a wiki"],
  ["page", "home-assistant", [8123], "a smart home"],
  ["page", "node-red", [1880], "a smart home"],
  ["page", "pihole", [80], "a DNS server with a page; 53 is DNS, 67 is DHCP, 443 is TLS"],
  [
    "page",
    "adguardhome",
    [80, 3000],
    "a DNS server with a page; 3000 is for its first start, 53 and 853 are DNS, 443 is TLS",
  ],
  ["page", "wg-easy", [51821], "a VPN with a page; 51820 is WireGuard"],
  ["page", "registry", [5000], "a registry of images"],
  ["page", "minio", [9000, 9001], "an object store: 9000 for programs, 9001 for people"],
  ["page", "jenkins", [8080], "a build server; 50000 is for agents"],
  ["page", "sonarqube", [9000], "a web app; 9001 is its search index"],
  ["page", "keycloak", [8080], "sign-in; 8443 is TLS, 9000 is for health checks"],
  ["page", "goauthentik/server authentik", [9000], "sign-in; 9443 is TLS"],
  ["page", "kong", [8000], "an API gateway; 8443 is TLS, 8001 and 8444 configure it"],
  ["page", "nexus3", [8081], "a registry of packages"],
  ["page", "metabase", [3000], "a web app"],
  ["page", "superset", [8088], "a web app"],
  ["page", "odoo", [8069, 8072], "a web app"],
  ["page", "open-webui", [8080], "a web app"],
  ["page", "woodpecker-server", [8000], "a build server; 9000 is gRPC for agents"],
  ["page", "syncthing", [8384], "file sharing; 22000 and 21027 are its own protocol"],
  ["page", "qbittorrent sabnzbd", [8080], "downloads; 6881 is BitTorrent"],
  ["page", "transmission", [9091], "downloads; 51413 is BitTorrent"],
  ["page", "sonarr radarr lidarr prowlarr jackett", [8989, 7878, 8686, 9696, 9117], "a web app"],
  ["page", "overseerr jellyseerr ombi", [5055, 3579], "a web app"],
  ["page", "homarr memos duplicati", [7575, 5230, 8200], "a web app"],
  ["page", "dns-server", [5380], "a DNS server with a page"],
  [
    "page",
    "unifi-network-application unifi-controller unifi",
    [],
    "8443 is its page with TLS, the others are for devices",
  ],
  ["page", "siyuan", [6806], "notes"],
  ["page", "code-server", [8443, 8080], "an editor"],
  ["dashboard", "grafana grafana-oss grafana-enterprise", [3000], "dashboards"],
  ["dashboard", "kibana opensearch-dashboards", [5601], "dashboards"],
  ["dashboard", "supabase/studio", [3000], "the dashboard of a database"],
  ["dashboard", "portainer-ce portainer-ee", [9000], "shows containers; 9443 is TLS, 8000 is for agents"],
  ["tool", "adminer", [8080], "shows a database"],
  ["tool", "phpmyadmin pgadmin4", [80], "shows a database"],
  ["tool", "mongo-express redis-commander", [8081], "shows a database"],
  ["tool", "redisinsight", [5540, 8001], "shows a database"],
  ["tool", "mailhog mailpit", [8025], "catches mail; 1025 is SMTP"],
  ["tool", "maildev", [1080, 80], "catches mail; 1025 is SMTP"],
  ["tool", "flower", [5555], "shows a queue"],
  ["tool", "kafka-ui akhq dozzle cadvisor", [8080], "shows another service"],
  ["tool", "rabbitmq", [15672], "a queue; 5672 is AMQP, 15672 its page"],
  ["tool", "prometheus", [9090], "metrics"],
  ["tool", "alertmanager", [9093], "alerts"],
  ["tool", "all-in-one jaeger", [16686], "traces; its other ports receive them"],
  ["tool", "emqx", [18083], "an MQTT broker; 18083 is its page"],
  ["machine", "elasticsearch opensearch", [9200], "a search index"],
  ["machine", "meilisearch typesense", [7700, 8108], "a search index"],
  ["machine", "qdrant weaviate chromadb/chroma", [6333, 8080, 8000], "a vector database"],
  ["machine", "clickhouse-server influxdb couchdb", [8123, 8086, 5984], "a database"],
  [
    "machine",
    "node-exporter pushgateway blackbox-exporter [a-z]+[-_]exporter",
    [9100, 9091, 9115],
    "metrics for Prometheus",
  ],
  [
    "machine",
    "loki tempo otel-collector opentelemetry-collector-contrib opentelemetry-collector",
    [3100, 3200, 4318],
    "logs and traces of programs",
  ],
  ["machine", "ollama", [11434], "a language model for programs"],
  ["machine", "logstash", [], "receives logs from programs"],
  ["machine", "fluentd fluent-bit telegraf vector", [], "receives logs from programs"],
  ["machine", "eclipse-mosquitto hivemq-ce vernemq", [], "an MQTT broker"],
  ["machine", "openssh-server sftp", [], "ssh"],
  ["machine", "docker-mailserver postfix mailserver", [], "a mail server"],
  ["machine", "coturn", [], "TURN"],
];

const known = rows.map(([use, names, http, reason]) => ({
  pattern: imagePattern(names),
  image: { use, http, reason },
}));

/** Words in the names of images and services that speak a protocol of their own, whatever their ports. */
const otherWords: readonly (readonly [words: RegExp, reason: string])[] = [
  [
    word("minecraft|mc-proxy|bungeecord|spigot|terraria|valheim|factorio|palworld|luanti|minetest"),
    "a game server",
  ],
  [word("csgo|cs2|tf2|rust-server|fivem|satisfactory|game-?server|gameserver|ark-server"), "a game server"],
  [word("teamspeak\\d?|mumble|murmur"), "a voice server"],
  [word("wireguard|openvpn|tailscale|gluetun|vpn"), "a VPN"],
  [word("mosquitto|mqtt"), "MQTT"],
  [word("sshd?|sftp|ftpd?"), "file transfer"],
  [word("smtp|imap|mailserver"), "mail"],
  [/^(?:.*[-_])?(?:php-?)?fpm$/i, "FastCGI"],
  [/^mc$/, "a game server"],
];

function word(words: string): RegExp {
  return new RegExp(`(?:^|[-_/])(?:${words})(?:$|[-_:/@])`, "i");
}

/** What is known of an image, or null. */
export function knownImage(image: string): KnownImage | null {
  return known.find(({ pattern }) => pattern.test(image))?.image ?? null;
}

/** A protocol that the names of a service and of its image show, or null. */
export function protocolByName(service: string, image: string): string | null {
  return otherWords.find(([words]) => words.test(service) || words.test(image))?.[1] ?? null;
}
