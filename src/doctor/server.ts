import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { serverCommands, serverServices } from "#config/server";
import { webhookUrl, webhookUrlOf } from "#config/values";
import { listContainers } from "#platform/docker/containers";
import { isServing } from "#platform/docker/health";
import { isInContainer } from "#platform/docker/mounts";
import { runCommand } from "#platform/run-command";
import { namesRunToTheirEnd } from "#rollout/project";
import { binDirectory } from "#runner/environment";
import { ping } from "#send/send";
import type { Server } from "#setup/server";
import { readVersion } from "#version";
import {
  type Check,
  type DoctorContext,
  type Fault,
  type Finding,
  ok,
  okUnless,
  problem,
  quote,
  skip,
  warning,
} from "./context.ts";
import { isUp, type ServerContainer } from "./probes.ts";

export const serverChecks: readonly Check[] = [
  {
    id: "containers",
    about: "server",
    claim: "Caddy and Hotpush run the installed version, are healthy, and start again after a reboot",
    fix: "creates, starts or updates what is missing. If a container ends or is not healthy, its last lines say why",
    async probe({ containers, server }) {
      const found = await containers();
      if (found === null || server === null) return skip("Docker cannot be asked");
      const services = Object.values(serverServices);
      const faults = services.flatMap((name) => containerFaults(name, found.get(name), server));
      const installed = `hotpush:${readVersion()}`;
      const images = ["front", "run"].map((name) => found.get(name)?.Config.Image ?? installed);
      const old = images.find((image) => image.startsWith("hotpush:") && image !== installed);
      const update = old ? [warning(`${old} runs; ${installed} is installed.`, "hotpush upgrade")] : [];
      return okUnless([...faults, ...update], `${services.join(", ")} are up`);
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

export const serviceChecks: readonly Check[] = [
  {
    id: "running",
    about: "project",
    claim: "the service runs, has its port, and has the secret that is set here",
    fix: "starts or restarts the service: the server's containers, the systemd unit, or in the foreground. Or it sets another port",
    async probe(context) {
      const { value, faults, settings, server } = context;
      const service = await context.service();
      const port = value("WEBHOOK_PORT");
      if (service.kind === "hotpush" && service.acceptsSecret === false) {
        const text =
          "The running service refuses a ping signed with the secret that is set here. Restart it.";
        return problem(text, await startCommand(context));
      }
      if (service.kind === "hotpush") return ok(`it answers at ${service.url}`);
      if (await isInOtherContainer(context)) return skip(askInContainer);
      if (service.kind === "another" && server === null) {
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
    claim: "deployments start, and the service is healthy",
    fix: "resumes a paused queue. Else the sentence is that of `/health`",
    async probe({ status, project }) {
      const answer = await status();
      if (answer instanceof Error || "projects" in answer)
        return skip("the process that deploys cannot be asked");
      const { health, waiting, running, paused, hold } = answer;
      if (!health.isHealthy) return problem(`The service is not healthy: ${health.detail}`);
      const count = waiting.length === 1 ? "1 deployment waits" : `${waiting.length} deployments wait`;
      const resume = `hotpush resume${project === null ? "" : ` --project ${project}`}`;
      if (paused !== null) return warning(`The queue is paused: ${count}.`, resume);
      const oldestMs = Math.min(...waiting.map(({ createdAt }) => Date.parse(createdAt)));
      if (running !== null || hold !== null || Date.now() - oldestMs < longestTurnMs) return ok("it moves");
      return problem(`${count}, one for more than an hour, and none runs. The log of the service says why.`);
    },
  },
  {
    id: "spool",
    about: "service",
    claim: "`hotpush run` takes the pushes that `hotpush front` stores",
    fix: "starts the process that does not run",
    async probe(context) {
      if (!(await isSplit(context))) return skip("one process takes deliveries and deploys");
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
      const [answer, docker] = [await compose(), await engine()];
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
    probe: checkPublicUrl,
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
      const away = Object.entries(services).filter(
        ([name, { restart }]) => !isSet(restart) && !once.has(name),
      );
      const faults = away.map(([name]) => {
        const text = `${name} does not start again after a crash or a reboot. If it runs once, write restart: "no".`;
        return warning(text, { change: `services.${name}.restart: unless-stopped` });
      });
      if (!needsUnit && answer?.kind !== "model") return skip("there is no unit and no compose file here");
      return okUnless([...unit, ...faults], "by systemd or by Docker");
    },
  },
];

/** Other projects may deploy first, and a remote that does not answer is asked again. */
const longestTurnMs = 3_600_000;

function containerFaults(
  service: string,
  container: ServerContainer | undefined,
  { files }: Server,
): readonly Fault[] {
  const { start } = serverCommands(files);
  if (container === undefined) return [problem(`${service} has no container.`, start)];
  const { Name, State, HostConfig, lastLines } = container;
  if (!isUp(container)) {
    const state = State.Status === "running" ? "runs, but is not healthy" : `does not run (${State.Status})`;
    const cause = lastLines.length === 0 ? "" : ` Its last lines: ${lastLines.join(" ")}`;
    return [problem(`${service} ${state}.${cause}`, start)];
  }
  const policy = HostConfig.RestartPolicy?.Name ?? "no";
  if (policy === "always" || policy === "unless-stopped") return [];
  const text = `${service} does not start again after a reboot (its restart policy is ${policy}).`;
  return [problem(text, `docker update --restart unless-stopped ${quote(Name.replace(/^\//, ""))}`)];
}

/** The services of a project that Caddy sends requests to, each with its port, by the site that `hotpush init` wrote. */
export function upstreamsOf(server: Server | null, project: string | null): ReadonlyMap<string, string> {
  const file = server && project && join(server.files.sitesPath, `${project}.caddy`);
  if (!file || !existsSync(file)) return new Map();
  const lines = readFileSync(file, "utf8").matchAll(/^\s*import service \S+ (\S+) (\d+)/gm);
  return new Map(Array.from(lines, ([, service = "", port = ""]) => [service, port]));
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
async function isSplit({ settings: { env }, status }: DoctorContext): Promise<boolean> {
  if (env.SPOOL_PATH?.trim() || env.FRONT_SOCKET?.trim()) return true;
  const answer = await status();
  return !(answer instanceof Error) && Boolean(answer.inbox);
}

/** Starts or restarts the service in the way that this machine is set up for. */
async function startCommand(context: DoctorContext): Promise<string> {
  if (context.server !== null) return serverCommands(context.server.files).start;
  const { names, state } = await readUnits(context);
  if (state !== null) return `systemctl restart ${names.join(" ")}`;
  // The service itself reads only `.env` in its working directory.
  const { file } = context.settings;
  const read = basename(file) === ".env" ? `cd ${quote(dirname(file))}` : `set -a && . ${quote(file)}`;
  const role = names.length === 1 ? "" : " run";
  return `${existsSync(file) ? `${read} && ` : ""}${quote(join(binDirectory, "hotpush"))}${role}`;
}

/** The units of systemd: one, or one for each process. They are in its files even if systemd does not run. */
async function readUnits(context: DoctorContext) {
  const names = (await isSplit(context)) ? ["hotpush-front", "hotpush-run"] : ["hotpush"];
  const argv = ["systemctl", "is-enabled", ...names] as const;
  const ending = await runCommand({ argv, env: context.scriptEnv, timeoutMs: 10_000 });
  const states = ending.kind === "exited" ? ending.output.split("\n").filter(Boolean) : [];
  const areThere = states.length === names.length && !states.includes("not-found");
  const areEnabled = states.every((one) => !/^(?:disabled|masked|linked|transient|bad)/.test(one));
  return { names, state: areThere ? (areEnabled ? "enabled" : "disabled") : null } as const;
}

/** After a reboot nobody is there to start the service. */
async function unitFaults(context: DoctorContext): Promise<readonly Fault[]> {
  const { names, state } = await readUnits(context);
  const enable = `systemctl enable ${names.join(" ")}`;
  if (state === "enabled") return [];
  if (state === "disabled") return [problem("systemd does not start Hotpush after a reboot.", enable)];
  const examples = fileURLToPath(new URL("../../examples/systemd/", import.meta.url));
  const files = names.map((name) => quote(join(examples, `${name}.service`))).join(" ");
  const text = "No systemd unit and no compose service starts Hotpush again after a reboot.";
  return [warning(text, `cp ${files} /etc/systemd/system/ && ${enable}`)];
}

/** More than nginx accepts by default (1 MiB), and as large as a push of many commits. */
const largeBytes = 2 * 1024 ** 2;

/** Goes the way of a delivery: through DNS, the certificate and the proxy to this service. */
async function checkPublicUrl(context: DoctorContext): Promise<Finding> {
  const { givenUrl, secret, settings, project, server } = context;
  const known = webhookUrl(givenUrl ?? settings.env.WEBHOOK_URL ?? "");
  if (known === null) return skip("name the URL that your git host sends to: hotpush doctor --url https://…");
  if (secret === null) return skip("there is no secret to sign with");
  const isSkipped = givenUrl === null && (await context.service()).kind !== "hotpush";
  if (isSkipped) return skip("the service does not run");
  // On a server, the site of a project passes /webhook on to its own path.
  const url = webhookUrlOf(known, server === null ? project : null);
  const options = { server: server?.files ?? null };
  const { outcome, text } = await ping(url, secret, options);
  const line = server
    ? `${server.files.sitesPath}/${project}.caddy: import deliveries ${project}`
    : `Caddyfile: reverse_proxy /webhook* 127.0.0.1:${context.value("WEBHOOK_PORT")}`;
  if (outcome !== "pong") return problem(text, outcome === "not-hotpush" ? { change: line } : undefined);
  const large = await ping(url, secret, { ...options, paddingBytes: largeBytes });
  if (!["not-hotpush", "unreachable"].includes(large.outcome))
    return ok(`${url.href} has accepted a signed ping`);
  const refused = `The proxy at ${url.href} refuses a body of 2 MiB, so a large push is lost. Git hosts send up to 25 MB. In nginx:`;
  return problem(refused, { change: "client_max_body_size 25m;" });
}
