import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { serverCommands, serverComposeProject, serverServices } from "#config/server";
import { webhookUrl, webhookUrlOf } from "#config/values";
import { listContainers } from "#platform/docker/containers";
import { isServing, lastLogLines } from "#platform/docker/health";
import { isInContainer } from "#platform/docker/mounts";
import { runCommand } from "#platform/run-command";
import { namesRunToTheirEnd } from "#rollout/project";
import { binDirectory } from "#runner/script";
import { ping } from "#send/send";
import type { Server } from "#setup/server";
import { servicesIn } from "#setup/sites";
import { readVersion } from "#version";
import {
  type Check,
  type DoctorContext,
  type Fault,
  ok,
  okUnless,
  problem,
  quote,
  skip,
  warning,
} from "./context.ts";

export const serverChecks: readonly Check[] = [
  {
    id: "containers",
    about: "server",
    claim: "Caddy and Hotpush run the installed version, and are healthy",
    fix: "creates, starts or updates what is missing. If a container ends or is not healthy, its last lines say why",
    async probe({ engine: askEngine, server }) {
      const docker = await askEngine();
      if (docker.kind !== "answers" || server === null) return skip("Docker cannot be asked");
      const found = await listContainers(docker.engine, serverComposeProject);
      const { start } = serverCommands(server.files);
      const faults: Fault[] = [];
      for (const name of Object.values(serverServices)) {
        const one = found.find(({ service }) => service === name);
        if (one === undefined) faults.push(problem(`${name} has no container.`, start));
        else if (one.status !== "running" || one.health === "unhealthy") {
          const lines = (await lastLogLines(docker.engine, one.id, 3)).map(messageOf).join(" ");
          const state = `is ${one.status}${one.health ? ` (${one.health})` : ""}`;
          faults.push(problem(`${name} ${state}. Its last lines: ${lines}`, start));
        }
      }
      const installed = `hotpush:${readVersion()}`;
      const old = found.find(({ imageName }) => /^hotpush:/.test(imageName) && imageName !== installed);
      if (old) faults.push(warning(`${old.imageName} runs; ${installed} is installed.`, "hotpush upgrade"));
      return okUnless(faults, `${Object.values(serverServices).join(", ")} are up`);
    },
  },
  {
    id: "caddy",
    about: "server",
    claim: "Caddy, its networks and its live files are as the files of the server say",
    fix: "shows the log of `run`, which looks every second. If Caddy rejects a file, correct what it names",
    async probe({ status, server }) {
      const answer = await status();
      if (answer instanceof Error || server === null) return skip("`hotpush run` cannot be asked");
      const logs = serverCommands(server.files).logsOf(serverServices.run);
      return okUnless(
        answer.serverFaults.map((text) => problem(text, logs)),
        "nothing differs",
      );
    },
  },
];

/** The sentence of a line of the log, which is JSON in a container. */
function messageOf(line: string): string {
  return /"msg":"((?:[^"\\]|\\.)*)"/.exec(line)?.[1] ?? line;
}

export const serviceChecks: readonly Check[] = [
  {
    id: "running",
    about: "project",
    claim: "the service runs, has its port, and has the secret that is set here",
    fix: "starts or restarts the service: the server's containers, the systemd unit, or in the foreground. Or it sets another port",
    async probe(context) {
      const { value, faults, settings, server } = context;
      const service = await context.service();
      if (service.kind === "hotpush" && service.acceptsSecret === false) {
        const text =
          "The running service refuses a ping signed with the secret that is set here. Restart it.";
        return problem(text, await startCommand(context));
      }
      if (service.kind === "hotpush") return ok(`it answers at ${service.url}`);
      if (await isInOtherContainer(context)) return skip(askInContainer);
      if (service.kind === "another" && server === null) {
        const port = value("WEBHOOK_PORT");
        const text = `Port ${port} is taken by another program (ss -ltnp 'sport = :${port}' shows which). The proxy, or the form of the git host, must name the new one too.`;
        return problem(text, settings.set("WEBHOOK_PORT", String(port + 1)));
      }
      const text = "Hotpush does not answer here: nobody receives a push.";
      return problem(text, faults.length > 0 ? undefined : await startCommand(context));
    },
  },
  {
    id: "queue",
    about: "project",
    claim: "the queue is not paused, and the service is healthy",
    fix: "resumes a paused queue. Else the sentence is that of `/health`",
    async probe({ status, project }) {
      const answer = await status();
      if (answer instanceof Error || "projects" in answer)
        return skip("the process that deploys cannot be asked");
      const { health, waiting, paused } = answer;
      if (!health.isHealthy) return problem(`The service is not healthy: ${health.detail}`);
      if (paused === null) return ok(`${waiting.length} waiting`);
      const resume = `hotpush resume${project === null ? "" : ` --project ${project}`}`;
      return warning(`The queue is paused. Waiting: ${waiting.length}.`, resume);
    },
  },
  {
    id: "spool",
    about: "service",
    claim: "`hotpush run` takes the pushes that `hotpush front` stores",
    fix: "starts the process that does not run",
    async probe(context) {
      if (!isSplit(context)) return skip("one process takes deliveries and deploys");
      const answer = await context.status();
      if (answer instanceof Error)
        return problem(`\`hotpush run\` does not answer: ${answer.message}`, await startCommand(context));
      const failure = answer.inbox?.failure ?? null;
      if (failure === null) return ok("run reads the spool");
      const text = `\`hotpush run\` takes no pushes (${failure}). Does \`hotpush front\` run, and have both the same SPOOL_PATH?`;
      return problem(text, await startCommand(context));
    },
  },
  {
    id: "sites",
    about: "project",
    claim: "each service behind Caddy has a container that serves",
    fix: "starts the service",
    async probe({ server, project, compose, engine, repoPath }) {
      const names = [...upstreamsOf(server, project).keys()];
      if (names.length === 0) return skip("the project has no site of Caddy on this server");
      const answer = await compose();
      const docker = await engine();
      if (answer.kind !== "model" || docker.kind !== "answers")
        return skip("Docker or compose cannot be asked");
      const serving = (await listContainers(docker.engine, answer.model.name)).filter(isServing);
      const up = `docker compose --project-directory ${quote(repoPath)} up --detach --wait`;
      const down = names.filter((name) => !serving.some(({ service }) => service === name));
      const text = "serves, so its requests are answered with 502.";
      return okUnless(
        down.map((name) => problem(`No container of ${name} ${text}`, `${up} ${name}`)),
        names.join(", "),
      );
    },
  },
  {
    id: "public-url",
    about: "project",
    claim: "a delivery to the public URL reaches this service",
    fix: "is the line for the proxy. The check runs with `--url`, or if `WEBHOOK_URL` is set and the service runs",
    async probe(context) {
      const { givenUrl, secret, settings, project, server } = context;
      const known = webhookUrl(givenUrl ?? settings.env.WEBHOOK_URL ?? "");
      if (known === null)
        return skip("name the URL that your git host sends to: hotpush doctor --url https://…");
      if (secret === null) return skip("there is no secret to sign with");
      if (givenUrl === null && (await context.service()).kind !== "hotpush")
        return skip("the service does not run");
      // On a server, the site of a project passes /webhook on to its own path.
      const url = webhookUrlOf(known, server === null ? project : null);
      const { outcome, text } = await ping(url, secret, server?.files ?? null);
      if (outcome === "pong") return ok(`${url.href} has accepted a signed ping`);
      const line = server
        ? `${server.files.sitesPath}/${project}.caddy: import deliveries ${project}`
        : `Caddyfile: reverse_proxy /webhook* 127.0.0.1:${context.value("WEBHOOK_PORT")}`;
      return problem(text, outcome === "not-hotpush" ? { change: line } : undefined);
    },
  },
  {
    id: "restart",
    about: "both",
    claim: "the service and the project start again after a crash and a reboot",
    fix: "enables the systemd unit; `services.….restart` is a line of the compose file",
    async probe(context) {
      const { project, projectsPath, server, compose } = context;
      const answer = project === null && projectsPath !== null ? null : await compose();
      const services = answer?.kind === "model" ? answer.model.services : {};
      const needsUnit = project === null && server === null && !isInContainer();
      const unit = needsUnit && !(await isInOtherContainer(context)) ? await unitFaults(context) : [];
      const once = namesRunToTheirEnd(services);
      // A written "no" is intended: the service runs once.
      const isSet = (policy = "") => ["always", "unless-stopped", "no"].includes(policy);
      const faults = Object.entries(services)
        .filter(([name, { restart }]) => !isSet(restart) && !once.has(name))
        .map(([name]) => {
          const text = `${name} does not start again after a crash or a reboot. If it runs once, write restart: "no".`;
          return warning(text, { change: `services.${name}.restart: unless-stopped` });
        });
      if (!needsUnit && answer?.kind !== "model") return skip("there is no unit and no compose file here");
      return okUnless([...unit, ...faults], "by systemd or by Docker");
    },
  },
];

/** The services of a project that Caddy sends requests to, each with its port, by the site that `hotpush init` wrote. */
export function upstreamsOf(server: Server | null, project: string | null): ReadonlyMap<string, number> {
  const file = server && project && join(server.files.sitesPath, `${project}.caddy`);
  if (!file || !existsSync(file)) return new Map();
  return new Map(servicesIn(readFileSync(file, "utf8")).map(({ service, port }) => [service, port]));
}

/** From the host, a service in a container cannot be checked. */
export const askInContainer = "it is in the container: docker compose exec hotpush hotpush doctor";

/** Whether Hotpush is a service of the project's compose file, and this is not its container. */
export async function isInOtherContainer({ compose, server }: DoctorContext): Promise<boolean> {
  const answer = await compose();
  if (answer.kind !== "model" || server !== null || isInContainer()) return false;
  return "hotpush" in answer.model.services;
}

/** Whether `front` and `run` are two processes. */
function isSplit({ settings: { env } }: DoctorContext): boolean {
  return Boolean(env.SPOOL_PATH?.trim() || env.FRONT_SOCKET?.trim());
}

/** Starts or restarts the service in the way that this machine is set up for. */
async function startCommand(context: DoctorContext): Promise<string> {
  if (context.server !== null) return serverCommands(context.server.files).start;
  const units = unitsOf(context);
  if ((await unitState(context)) !== "not-found") return `systemctl restart ${units.join(" ")}`;
  // The service itself reads only `.env` in its working directory.
  const { file } = context.settings;
  const read = basename(file) === ".env" ? `cd ${quote(dirname(file))}` : `set -a && . ${quote(file)}`;
  const start = quote(join(binDirectory, "hotpush")) + (isSplit(context) ? " run" : "");
  return existsSync(file) ? `${read} && ${start}` : start;
}

function unitsOf(context: DoctorContext): readonly string[] {
  return isSplit(context) ? ["hotpush-front", "hotpush-run"] : ["hotpush"];
}

/** Of the units of systemd: `not-found` if one is missing, by their files even if systemd does not run. */
async function unitState(context: DoctorContext): Promise<"enabled" | "disabled" | "not-found"> {
  const units = unitsOf(context);
  const argv = ["systemctl", "is-enabled", ...units] as const;
  const ending = await runCommand({ argv, env: context.scriptEnv, timeoutMs: 10_000 });
  const states = ending.kind === "exited" ? ending.output.split("\n").filter(Boolean) : [];
  if (states.length !== units.length || states.includes("not-found")) return "not-found";
  return states.includes("disabled") ? "disabled" : "enabled";
}

/** After a reboot nobody is there to start the service. */
async function unitFaults(context: DoctorContext): Promise<readonly Fault[]> {
  const units = unitsOf(context);
  const state = await unitState(context);
  const enable = `systemctl enable ${units.join(" ")}`;
  if (state === "enabled") return [];
  if (state === "disabled") return [problem("systemd does not start Hotpush after a reboot.", enable)];
  const examples = fileURLToPath(new URL("../../examples/systemd/", import.meta.url));
  const files = units.map((name) => quote(join(examples, `${name}.service`))).join(" ");
  const text = "No systemd unit and no compose service starts Hotpush again after a reboot.";
  return [warning(text, `cp ${files} /etc/systemd/system/ && ${enable}`)];
}
