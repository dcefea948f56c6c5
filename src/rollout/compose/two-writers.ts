import { imagePattern } from "../../platform/compose/image-names.ts";
import type { ComposeService, ComposeVolume } from "../../platform/compose/model.ts";

/** Images that are run as several containers on one volume; their records are in a database of its own. */
const severalWriters = imagePattern(`
  wordpress nextcloud drupal joomla mediawiki moodle matomo mautic bookstack invoiceninja
  mastodon mastodon-streaming immich-server immich-machine-learning outline discourse
  nginx nginx-unprivileged httpd caddy traefik haproxy registry`);

/** Images that keep a database file, an index or a lock in their volume: the second container damages it, or waits. */
const oneWriter = imagePattern(`
  vaultwarden/server bitwardenrs/server uptime-kuma n8n grafana grafana-oss grafana-enterprise alertmanager
  jellyfin plex pms-docker emby embyserver audiobookshelf navidrome calibre-web photoprism
  home-assistant zigbee2mqtt zwave-js-ui node-red frigate esphome
  paperless-ngx paperless-ngx/paperless-ngx mealie actual-server linkding memos trilium trilium-notes freshrss
  changedetection.io filebrowser syncthing gotify ntfy headscale synapse pocketbase open-webui anythingllm flowise
  sonarr radarr lidarr readarr prowlarr bazarr overseerr jellyseerr qbittorrent transmission deluge sabnzbd
  pihole adguardhome wg-easy portainer-ce portainer-ee nginx-proxy-manager
  drone woodpecker-server sonarqube metabase kanboard eclipse-mosquitto mailpit
  teamspeak minecraft-server minecraft-bedrock-server factorio valheim-server`);

/** How many containers of a service may write to its volumes at once, as far as its image shows it. */
export type Writers = "one" | "several" | "unknown";

export function writersOf({ image = "" }: ComposeService): Writers {
  if (severalWriters.test(image)) return "several";
  return oneWriter.test(image) ? "one" : "unknown";
}

/** Paths of sockets, clocks and other parts of the machine, and of the live files: nobody keeps data there. */
const noData =
  /^\/(?:var\/)?run(?:\/|$)|\.sock$|^\/etc\/(?:localtime|timezone|hosts|ssl|letsencrypt)|^\/(?:dev|proc|sys)(?:\/|$)/;
/** A single file of configuration, or a directory of caches and installed packages that each container can make again. */
const replaceable =
  /\.(?:ya?ml|json|toml|ini|conf|cfg|cnf|env|xml|properties|pem|crt|key|sh|js|ts|php|html?)$|^\/tmp(?:\/|$)|\/(?:node_modules|\.next|\.cache|\.npm|\.cargo|vendor|__pycache__)(?:\/|$)/;

/**
 * The volume that has one writer now, and two while the old and the new container of a service run side by side. Null if
 * there is none, or if several containers write to it already: replicas, or a worker with the same image. Anonymous
 * volumes do not count, because each container has its own.
 */
export function volumeOfOneWriter(
  name: string,
  services: Readonly<Record<string, ComposeService>>,
): ComposeVolume | null {
  const service = services[name] ?? {};
  const volume = service.volumes?.find((one) => isWritten(one) && !isCode(one, service));
  if (volume === undefined || writersOf(service) === "several") return null;
  if (Number(service.deploy?.replicas ?? service.scale ?? 1) > 1) return null;
  const others = Object.entries(services).filter(([other]) => other !== name);
  return others.some(([, other]) => isSameImage(service, other) && writesTo(other, volume)) ? null : volume;
}

function isWritten({ type, source, target, read_only: isReadOnly = false }: ComposeVolume): boolean {
  if (isReadOnly || !source || (type !== "volume" && type !== "bind")) return false;
  return !noData.test(source) && !noData.test(target) && !replaceable.test(target);
}

/** The directory that the image is built from, mounted over what was copied from it. */
function isCode({ source }: ComposeVolume, { build }: ComposeService): boolean {
  return typeof build === "object" && build !== null && "context" in build && build.context === source;
}

function isSameImage(one: ComposeService, other: ComposeService): boolean {
  return one.image === other.image && JSON.stringify(one.build) === JSON.stringify(other.build);
}

function writesTo({ volumes = [] }: ComposeService, { source }: ComposeVolume): boolean {
  return volumes.some((volume) => volume.source === source && !volume.read_only);
}
