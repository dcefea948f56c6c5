import { existsSync, readFileSync } from "node:fs";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { isDeepStrictEqual } from "node:util";
import { callRun } from "#calls/client";
import { formatDuration } from "#config/duration";
import { adminSocket, liveMount, serverCommands, serverServices } from "#config/server";
import { webhookUrl, webhookUrlOf } from "#config/values";
import { listContainers } from "#platform/docker/container";
import { isServing } from "#platform/docker/health";
import { isInContainer } from "#platform/docker/mountinfo";
import { ownUid } from "#platform/files";
import { sendHttp } from "#platform/http";
import { runCommand } from "#platform/run-command";
import { withShortPath } from "#platform/unix-socket";
import { binDirectory } from "#runner/environment";
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
import { isUp, pingWebhook, type ServerContainer } from "./probes.ts";

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
      const faults = await Promise.all(
        services.map((name) => containerFaults(name, found.get(name), server)),
      );
      const installed = `hotpush:${readVersion()}`;
      const images = ["front", "run"].map((name) => found.get(name)?.Config.Image ?? installed);
      const old = images.find((image) => image.startsWith("hotpush:") && image !== installed);
      const update = old ? [warning(`${old} runs; ${installed} is installed.`, "hotpush upgrade")] : [];
      return okUnless([...faults.flat(), ...update], `${services.join(", ")} are up`);
    },
  },
  {
    id: "caddy",
    about: "server",
    claim: "Caddy answers, and has loaded its present files",
    fix: "shows the log of Caddy or of `run`, which loads a changed file within seconds. If Caddy rejects a file, correct what it names",
    untested: "a person has to correct the file",
    async probe({ server }) {
      if (server === null) return skip("hotpush init has not set up this server");
      const { caddyfile, sitesPath } = server.files;
      const loaded = await askCaddy(server, "/config/");
      const wanted = await askCaddy(server, "/adapt", readFileSync(caddyfile, "utf8"));
      const logs = (service: string) => serverCommands(server.files).logsOf(service);
      if (loaded === "EACCES") return skip("this user may not use Caddy's socket; root may");
      if (typeof loaded === "string" || typeof wanted === "string")
        return problem(`Caddy does not answer on its admin socket (${loaded}).`, logs("caddy"));
      if (wanted.status !== 200) {
        const text = `Caddy rejects its files, keeps the earlier ones, and would not start again: ${wanted.body.slice(0, 300)}`;
        return problem(text, { change: `${sitesPath}/ or ${caddyfile}` });
      }
      const { result } = JSON.parse(wanted.body) as { readonly result: unknown };
      if (isDeepStrictEqual(JSON.parse(loaded.body), result))
        return ok("it has the configuration of the files");
      return warning(
        "Caddy has not loaded its present files. The log of `hotpush run` says why:",
        logs("run"),
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
    async probe({ statePath, project }) {
      const asked = { project: project ?? undefined };
      const status = await callRun(statePath, "status", asked).catch(() => null);
      if (status === null || "projects" in status) return skip("the process that deploys cannot be asked");
      const { health, waiting, running, paused, hold } = status;
      const count = waiting.length === 1 ? "1 deployment waits" : `${waiting.length} deployments wait`;
      if (!health.isHealthy) return problem(`The service is not healthy: ${health.detail}`);
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
    claim: "pushes go from front to run",
    fix: "starts the process that does not run, or adds this user to the group of the spool",
    async probe(context) {
      const roles = await context.roles();
      if (roles === null) return skip("one process takes deliveries and deploys");
      const { spoolPath, waiting, run } = roles;
      if (waiting === "EACCES") {
        const join = `usermod --append --groups "$(stat -c %G ${quote(dirname(spoolPath))})" "$(id -un ${ownUid()})"`;
        return problem(`This user (uid ${ownUid()}) may not read ${spoolPath}. As root:`, join);
      }
      const start = await startCommand(context);
      if (typeof waiting === "string")
        return problem(
          `\`hotpush front\` has no spool at ${spoolPath} (${waiting}): no push is taken.`,
          start,
        );
      if (run.fault !== null) return problem(`\`hotpush run\` does not answer: ${run.fault}`, start);
      if (run.failure !== null)
        return problem(
          `\`hotpush run\` takes no pushes from ${spoolPath} (${run.failure}). Does \`hotpush front\` run, and have both the same SPOOL_PATH?`,
        );
      const ageMs = waiting.sinceMs === null ? 0 : Date.now() - waiting.sinceMs;
      if (ageMs < longestWaitMs) return ok("run reads the spool, and nothing waits long");
      return problem(
        `A push has waited for ${formatDuration(ageMs)}: \`hotpush run\` does not take it. Its log says why.`,
      );
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
    fix: "is the line for the proxy, the record for DNS, or the URL for the form of the git host. The check runs with `--url`, or if `WEBHOOK_URL` is set and the service runs",
    untested: "it is in the proxy, in DNS or at the git host; the tests change what stands in for them",
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
      const services = answer?.kind === "model" ? Object.entries(answer.model.services) : [];
      const needsUnit = project === null && server === null && !isInContainer();
      const unit = needsUnit && !(await isInOtherContainer(context)) ? await unitFaults(context) : [];
      const dependencies = services.flatMap(([, { depends_on }]) => Object.entries(depends_on ?? {}));
      const runsOnce = (name: string) =>
        dependencies.some(
          ([one, { condition }]) => one === name && condition === "service_completed_successfully",
        );
      // A written "no" is intended: the service runs once.
      const isSet = (policy = "") => ["always", "unless-stopped", "no"].includes(policy);
      const away = services.filter(([name, { restart }]) => !isSet(restart) && !runsOnce(name));
      const faults = away.map(([name]) => {
        const text = `${name} does not start again after a crash or a reboot. If it runs once, write restart: "no".`;
        return warning(text, { change: `services.${name}.restart: unless-stopped` });
      });
      if (!needsUnit && services.length === 0) return skip("there is no unit and no compose file here");
      return okUnless([...unit, ...faults], "by systemd or by Docker");
    },
  },
];

/** `run` takes within a second. */
const longestWaitMs = 60_000;
/** Other projects may deploy first, and a remote that does not answer is asked again. */
const longestTurnMs = 3_600_000;

function containerFaults(
  service: string,
  container: ServerContainer | undefined,
  server: Server,
): readonly Fault[] {
  if (container === undefined) return [problem(`${service} has no container.`, serverUp(server))];
  const { Name, State, HostConfig, lastLines } = container;
  if (!isUp(container)) {
    const state = State.Status === "running" ? "runs, but is not healthy" : `does not run (${State.Status})`;
    const cause = lastLines.length === 0 ? "" : ` Its last lines: ${lastLines.join(" ")}`;
    return [problem(`${service} ${state}.${cause}`, serverUp(server))];
  }
  const policy = HostConfig.RestartPolicy?.Name ?? "no";
  if (policy === "always" || policy === "unless-stopped") return [];
  const text = `${service} does not start again after a reboot (its restart policy is ${policy}).`;
  return [problem(text, `docker update --restart unless-stopped ${quote(Name.replace(/^\//, ""))}`)];
}

/** Creates and starts the containers of the server as its files describe them. */
function serverUp({ files }: Server): string {
  return `docker compose --project-directory ${quote(files.path)} up --detach --wait`;
}

/** Asks Caddy's admin API. @param caddyfile the body of a POST; without it, a GET. @returns an error's code if it does not answer */
async function askCaddy({ state }: Server, path: string, caddyfile?: string) {
  const socket = join(isInContainer() ? liveMount : state.live, adminSocket);
  const headers = { host: "localhost", "content-type": "text/caddyfile" };
  const post = caddyfile === undefined ? {} : { method: "POST", body: caddyfile };
  try {
    const request = { ...post, headers, timeoutMs: 5_000 };
    const answer = await withShortPath(socket, (socketPath) => sendHttp({ socketPath, path }, request));
    return { status: answer.status, body: answer.body.toString() };
  } catch (error) {
    return (error as NodeJS.ErrnoException).code ?? "no answer";
  }
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

/** Starts or restarts the service in the way that this machine is set up for. */
async function startCommand(context: DoctorContext): Promise<string> {
  if (context.server !== null) return serverUp(context.server);
  const units = await unitNames(context);
  if ((await unitState(context)) !== null) return `systemctl restart ${units.join(" ")}`;
  // The service itself reads only `.env` in its working directory.
  const { file } = context.settings;
  const isDotenv = basename(file) === ".env";
  const read = isDotenv ? `cd ${quote(dirname(file))}` : `set -a && . ${quote(file)}`;
  const roles = units.length === 1 ? "" : " run";
  return `${existsSync(file) ? `${read} && ` : ""}${quote(join(binDirectory, "hotpush"))}${roles}`;
}

/** The units of systemd: one, or one for each process. */
async function unitNames({ roles }: DoctorContext): Promise<readonly string[]> {
  return (await roles()) === null ? ["hotpush"] : ["hotpush-front", "hotpush-run"];
}

/** Looks for the units in systemd's files, which are there even if systemd does not run. null: not all are there. */
async function unitState(context: DoctorContext): Promise<"enabled" | "disabled" | null> {
  const units = await unitNames(context);
  const argv = ["systemctl", "is-enabled", ...units] as const;
  const ending = await runCommand({ argv, env: context.scriptEnv, timeoutMs: 10_000 });
  const states = ending.kind === "exited" ? ending.output.split("\n").filter(Boolean) : [];
  if (states.length < units.length || states.includes("not-found")) return null;
  return states.every((state) => !/^(?:disabled|masked|linked|transient|bad)/.test(state))
    ? "enabled"
    : "disabled";
}

/** After a reboot nobody is there to start the service. */
async function unitFaults(context: DoctorContext): Promise<readonly Fault[]> {
  const state = await unitState(context);
  const units = await unitNames(context);
  const enable = `systemctl enable ${units.join(" ")}`;
  if (state === "enabled") return [];
  if (state === "disabled") return [problem("systemd does not start Hotpush after a reboot.", enable)];
  const examples = fileURLToPath(new URL("../../examples/systemd/", import.meta.url));
  const files = units.map((name) => quote(join(examples, `${name}.service`))).join(" ");
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
  const { href: url, hostname } = webhookUrlOf(known, server === null ? project : null);
  const line = server
    ? `${server.files.sitesPath}/${project}.caddy: import deliveries ${project}`
    : `Caddyfile: reverse_proxy /webhook* 127.0.0.1:${context.value("WEBHOOK_PORT")}`;
  const wrong = (text: string, change: string) => problem(text, { change });
  const reply = await pingWebhook(url, secret);
  if (reply.kind === "none") {
    const record = `a DNS record of type A or AAAA for ${hostname}, with the address of this machine`;
    if (/ENOTFOUND|EAI_AGAIN/.test(reply.code))
      return wrong(`DNS does not know the name ${hostname}.`, record);
    const text = /CERT|TLS|SSL|ISSUER|SIGNATURE/.test(reply.code)
      ? `The certificate at ${url} is not valid (${reply.text}). Caddy gets one by itself if ${hostname} has the address of this machine in DNS, and ports 80 and 443 are open.`
      : `Nothing answers at ${url} (${reply.text}). Does the proxy run, and does the firewall let the connection through?`;
    return wrong(text, line);
  }
  if (reply.status >= 300 && reply.status < 400) {
    const text = `${url} redirects, and git hosts do not follow: the push is lost. In the form of the git host, use:`;
    return wrong(text, `Payload URL: ${reply.location}`);
  }
  if (reply.code === "signature_invalid")
    return problem(
      `A Hotpush answers at ${url}, but with another secret: it is another service, or was not restarted.`,
    );
  if (!reply.isPong)
    return wrong(`${url} answers with status ${reply.status}, but Hotpush did not send that.`, line);
  const large = await pingWebhook(url, secret, largeBytes);
  if (large.kind === "answer" && (large.isPong || large.code !== null))
    return ok(`${url} has accepted a signed ping`);
  const text = `The proxy at ${url} refuses a body of 2 MiB, so a large push is lost. Git hosts send up to 25 MB. In nginx:`;
  return wrong(text, "client_max_body_size 25m;");
}
