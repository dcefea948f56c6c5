import { cp, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { countingLines } from "../../src/rollout/requests.ts";
import { indented, makeProject, type TestProject } from "../../test/lab/project.ts";

/** A project of some services behind Caddy, each with a build of its own. */
export interface ServicesProject extends TestProject {
  readonly services: readonly string[];
  /** Writes a version of each service. */
  readonly writeAll: (version: string) => Promise<void>;
  /** Whether all services answer with `version` through Caddy. */
  readonly isLive: (version: string) => Promise<boolean>;
}

/**
 * @param proxied how Caddy finds a service: by its live file, or by its name
 * @param isGuarded as `init` sets a project up: Caddy logs requests, and each new version is guarded as long as by default
 */
export async function makeServicesProject(
  env: NodeJS.ProcessEnv,
  count: number,
  proxied: "by live file" | "by name",
  isGuarded = false,
): Promise<ServicesProject> {
  const project = await makeProject(env);
  const services = Array.from({ length: count }, (_, index) => `s${index + 1}`);
  const { directory } = project;
  for (const service of services)
    await cp(join(import.meta.dirname, "../../test/lab/app"), join(directory, service), { recursive: true });
  await writeFile(join(directory, "compose.yaml"), JSON.stringify(composeFile(services, isGuarded)));
  await writeFile(join(directory, "Caddyfile"), caddyfile(services, proxied, isGuarded));

  async function writeAll(version: string): Promise<void> {
    for (const service of services)
      await writeFile(
        join(directory, service, "behaviour.json"),
        JSON.stringify({ version, behaviour: "graceful", service }),
      );
  }

  async function isLive(version: string): Promise<boolean> {
    const answers = await Promise.all(services.map((service) => answerOf(`${project.origin}/${service}/`)));
    return answers.every((answer) => answer.startsWith(`${version} `));
  }

  return { ...project, services, writeAll, isLive };
}

async function answerOf(url: string): Promise<string> {
  const signal = AbortSignal.timeout(2_000);
  return fetch(url, { signal, headers: { connection: "close" } }).then(
    (response) => response.text(),
    () => "",
  );
}

function composeFile(services: readonly string[], isGuarded: boolean): object {
  const labels = isGuarded ? {} : { "hotpush.guard": "0" };
  const healthcheck = {
    test: ["CMD", "./healthcheck.sh"],
    interval: "5s",
    start_period: "30s",
    start_interval: "500ms",
  };
  const apps = services.map((service) => [
    service,
    { build: service, restart: "unless-stopped", labels, healthcheck },
  ]);
  const caddy = {
    image: "caddy:2",
    // biome-ignore lint/suspicious/noTemplateCurlyInString: compose replaces it.
    ports: ["127.0.0.1:${PORT}:80"],
    volumes: ["./Caddyfile:/etc/caddy/Caddyfile:ro", "live:/run/live"],
  };
  return { services: { ...Object.fromEntries(apps), caddy }, volumes: { live: {} } };
}

function caddyfile(
  services: readonly string[],
  proxied: "by live file" | "by name",
  isGuarded: boolean,
): string {
  const sites = services.map((service) => {
    const upstream = proxied === "by name" ? service : `{file./run/live/${service}}`;
    return `\thandle_path /${service}/* {\n\t\treverse_proxy ${upstream}:8080 {\n\t\t\tlb_try_duration 10s\n\t\t\tlb_try_interval 50ms\n\t\t}\n\t}\n`;
  });
  const log = isGuarded ? `${indented(countingLines, 1)}\n` : "";
  return `{\n\tadmin unix//run/live/admin.sock|0600\n}\n:80 {\n${log}${sites.join("")}}\n`;
}
