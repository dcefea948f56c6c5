import { readFileSync } from "node:fs";
import { type Fault, warning } from "../check.ts";
import { type LintedProject, lintCheck, mountsLiveFiles, type Role } from "./lint-check.ts";

/** A proxy that does not know which container is live sends requests to the one that is about to stop. */
export const liveFileLint = lintCheck(
  "lint-live-file",
  "the proxy reads which container is live",
  "it does, or the file has no proxy",
  (project) => {
    const isScaled = project.apps.length > 0 && project.apps.every(({ label }) => label === "scale");
    const proxies = project.roles.filter(({ kind }) => kind === "proxy");
    if (proxies.length === 0 || isScaled) return [];
    return [...proxies.flatMap((proxy) => faultsOf(proxy, project)), ...ownFaults(project)];
  },
);

function faultsOf({ name, service }: Role, { apps }: LintedProject): readonly Fault[] {
  const { image = "" } = service;
  const rolled = apps.filter(({ label }) => label !== "scale");
  if (/(?:^|\/)traefik/.test(image)) {
    return rolled.map((app) => {
      const text = `${name} finds containers by itself, and reads no live file.`;
      return warning(text, { change: `services.${app.name}.labels: hotpush.rollout: scale` });
    });
  }
  if (mountsLiveFiles(service)) {
    const file = service.volumes?.find(({ target }) => target.endsWith("/Caddyfile"))?.source;
    return file === undefined ? [] : faultsOfCaddyfile(file, rolled);
  }
  if (/(?:^|\/)caddy/.test(image)) {
    const text = `${name} does not have the live files: it would send requests to a container that is about to stop.`;
    return [warning(text, { change: `services.${name}.volumes: add live:/run/live` })];
  }
  const text = `${name} (${image || "built here"}) cannot read which container is live, so requests are lost while one is replaced. Caddy can: docs/rollout.md.`;
  return [warning(text, { change: `services.${name}.image: caddy:2` })];
}

function faultsOfCaddyfile(path: string, apps: readonly Role[]): readonly Fault[] {
  const text = readOrNull(path);
  if (text === null) return [];
  const fixed = apps.flatMap(({ name }) => {
    const target = new RegExp(`(?:^|[\\s/])${name}:(\\d+)`, "m").exec(text);
    if (!target || text.includes(`/run/live/${name}}`)) return [];
    const change = `${path}: reverse_proxy {file./run/live/${name}}:${target[1]}`;
    const byName = `${path} sends requests to ${name} by its name, to the old and the new container alike.`;
    return [warning(byName, { change })];
  });
  if (/^\s*admin\s+unix\/\/?\/run\/live\/admin\.sock/m.test(text)) return fixed;
  const noAdmin = `${path} does not put Caddy's admin API into the live directory: a roll-out waits 10 s instead of asking when the old container has no requests left.`;
  return [...fixed, warning(noAdmin, { change: `${path}: { admin unix//run/live/admin.sock|0660 }` })];
}

/** Hotpush writes the live files, so it needs them too. */
function ownFaults({ roles }: LintedProject): readonly Fault[] {
  const own = roles.find(({ kind }) => kind === "hotpush");
  if (!own || mountsLiveFiles(own.service)) return [];
  const text = `${own.name} does not have the live files, so it cannot write for the proxy which container is live.`;
  return [warning(text, { change: `services.${own.name}.volumes: add live:/run/live` })];
}

function readOrNull(path: string): string | null {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return null;
  }
}
