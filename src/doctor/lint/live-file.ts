import { readForeignFile } from "../../platform/foreign-files.ts";
import { type Fault, warning } from "../check.ts";
import { type LintedProject, mountsLiveFiles, type Role } from "./lint.ts";

/** A proxy that does not know which container is live sends requests to the one that is about to stop. */
export function lintLiveFile(role: Role, { roles }: LintedProject): readonly Fault[] {
  const apps = roles.filter(({ isRolled }) => isRolled);
  const isScaled = apps.length > 0 && apps.every(({ label }) => label === "scale");
  if (isScaled || !roles.some(({ kind }) => kind === "proxy")) return [];
  if (role.kind === "hotpush") return faultsOfHotpush(role);
  const switched = apps.filter(({ label }) => label !== "scale").map(({ name }) => name);
  return role.kind === "proxy" ? faultsOfProxy(role, switched) : [];
}

/** Hotpush writes the live files, so it needs them too. */
function faultsOfHotpush({ name, service }: Role): readonly Fault[] {
  if (mountsLiveFiles(service)) return [];
  const text = `${name} does not have the live files, so it cannot write for the proxy which container is live.`;
  return [warning(text, { change: `services.${name}.volumes: add live:/run/live` })];
}

function faultsOfProxy({ name, service }: Role, apps: readonly string[]): readonly Fault[] {
  const { image = "" } = service;
  if (/(?:^|\/)traefik/.test(image)) {
    const text = `${name} finds containers by itself, and reads no live file.`;
    return apps.map((app) => warning(text, { change: `services.${app}.labels: hotpush.rollout: scale` }));
  }
  if (mountsLiveFiles(service)) {
    const file = service.volumes?.find(({ target }) => target.endsWith("/Caddyfile"))?.source;
    return file === undefined ? [] : faultsOfCaddyfile(file, apps);
  }
  if (/(?:^|\/)caddy/.test(image)) {
    const text = `${name} does not have the live files: it would send requests to a container that is about to stop.`;
    return [warning(text, { change: `services.${name}.volumes: add live:/run/live` })];
  }
  const text = `${name} (${image || "built here"}) cannot read which container is live, so requests are lost while one is replaced. Caddy can: docs/rollout.md.`;
  return [warning(text, { change: `services.${name}.image: caddy:2` })];
}

function faultsOfCaddyfile(path: string, apps: readonly string[]): readonly Fault[] {
  const text = readOrNull(path);
  if (text === null) return [];
  const fixed = apps.flatMap((name) => {
    const target = new RegExp(`(?:^|[\\s/])${name}:(\\d+)`, "m").exec(text);
    if (!target || text.includes(`/run/live/${name}}`)) return [];
    const byName = `${path} sends requests to ${name} by its name, to the old and the new container alike.`;
    return [warning(byName, { change: `${path}: reverse_proxy {file./run/live/${name}}:${target[1]}` })];
  });
  if (/^[ \t]*admin\s+unix\/\/?\/run\/live\/admin\.sock/m.test(text)) return fixed;
  const noAdmin = `${path} does not put Caddy's admin API into the live directory: a roll-out waits 10 s instead of asking when the old container has no requests left.`;
  return [...fixed, warning(noAdmin, { change: `${path}: { admin unix//run/live/admin.sock|0660 }` })];
}

function readOrNull(path: string): string | null {
  try {
    return readForeignFile(path, { mostBytes: 1024 ** 2 }).toString();
  } catch {
    return null;
  }
}
