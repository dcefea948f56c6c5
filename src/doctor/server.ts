import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { missedTexts } from "#calls/missed";
import { serverCommands, serverComposeProject, serverServices } from "#config/server";
import { listContainers } from "#platform/docker/containers";
import { isServing, lastLogLines } from "#platform/docker/health";
import { quote } from "#platform/ssh";
import { ping } from "#send/send";
import type { Server } from "#setup/server";
import { deliveriesLine, servicesIn } from "#setup/sites";
import { readVersion } from "#version";
import type { Check, DoctorContext } from "./context.ts";
import { type Finding, ok, okUnless, problem, skip, warning } from "./finding.ts";

export const serverChecks: readonly Check[] = [
  {
    id: "containers",
    about: "server",
    claim: "Caddy and Hotpush run the installed version, and are healthy",
    fix: "creates, starts or updates what is missing. If a container ends or is not healthy, its last lines say why",
    async probe({ engine: askEngine, server, start }) {
      const docker = await askEngine();
      if (docker.kind !== "answers" || server === null) return skip("Docker cannot be asked");
      const found = await listContainers(docker.engine, serverComposeProject);
      const faults: Finding[] = [];
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
    claim: "the service runs, and has the secret that is set here",
    fix: "starts the containers of the server. A service that was set up by hand is started as docs/set-up.md says",
    async probe(context) {
      const { start, faults, secret } = context;
      const { url, isHotpush, outcome } = await context.service();
      if (isHotpush && (outcome === "pong" || secret === null)) return ok(`it answers at ${url}`);
      const refused =
        "The running service refuses a ping signed with the secret that is set here. Restart it.";
      if (isHotpush) return problem(refused, start);
      const text = `Hotpush does not answer here: nobody receives a push.${elsewhere(context)}`;
      return problem(text, faults.length > 0 ? undefined : start);
    },
  },
  {
    id: "queue",
    about: "both",
    claim:
      "`hotpush run` answers, is healthy, takes what `hotpush front` stores, and its queue is not paused",
    fix: "resumes a paused queue, or starts the containers of the server",
    async probe(context) {
      const { status, project, start } = context;
      const answer = await status();
      if (answer instanceof Error)
        return problem(`\`hotpush run\` does not answer: ${answer.message}.${elsewhere(context)}`, start);
      const { health, waiting } = answer;
      if (!health.isHealthy) return problem(`The service is not healthy: ${health.detail}`, start);
      if ("projects" in answer || answer.paused === null) return ok(`${waiting.length} waiting`);
      const resume = `hotpush resume${project === null ? "" : ` --project ${project}`}`;
      return warning(`The queue is paused. Waiting: ${waiting.length}.`, resume);
    },
  },
  {
    id: "missed",
    claim: "no delivery was refused or ignored since the last one that counts",
    fix: "says what to change, here or in the webhook's form, if the delivery was a push of yours",
    async probe({ status }) {
      const answer = await status();
      if (answer instanceof Error || "projects" in answer) return skip("`hotpush run` cannot be asked");
      const faults = missedTexts(answer).map(({ at, text }) => warning(`${at}: ${text}`));
      return okUnless(faults, "none");
    },
  },
  {
    id: "sites",
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
      const { services } = answer.model;
      const up = `docker compose --project-directory ${quote(repoPath)} up --detach --wait`;
      const gone = { change: `remove its lines from ${server?.files.sitesPath}/${project}.caddy` };
      const down = names.filter((name) => !serving.some(({ service }) => service === name));
      const text = "serves, so its requests are answered with 502.";
      return okUnless(
        down.map((name) => {
          const fix = Object.hasOwn(services, name) ? `${up} ${name}` : gone;
          return problem(`No container of ${name} ${text}`, fix);
        }),
        names.join(", "),
      );
    },
  },
  {
    id: "public-url",
    claim: "a delivery to the public URL reaches this service",
    fix: "is the line for the proxy. The check runs with `--url`, or if `WEBHOOK_URL` is set and the service runs",
    async probe(context) {
      const { webhook: url, isUrlGiven, secret, project, server } = context;
      if (url === null)
        return skip("name the URL that your git host sends to: hotpush doctor --url https://…");
      if (secret === null) return skip("there is no secret to sign with");
      if (!isUrlGiven && !(await context.service()).isHotpush) return skip("the service does not run");
      const { outcome, text } = await ping(url, secret, server?.files ?? null);
      if (outcome === "pong") return ok(`${url.href} has accepted a signed ping`);
      const line = server
        ? `${server.files.sitesPath}/${project}.caddy: ${deliveriesLine(project ?? "", url.pathname, false)}`
        : `Caddyfile: reverse_proxy /webhook* 127.0.0.1:${context.value("WEBHOOK_PORT")}`;
      return problem(text, outcome === "not-hotpush" ? { change: line } : undefined);
    },
  },
];

/** The services of a project that Caddy sends requests to, each with its port, by the site that `hotpush init` wrote. */
export function upstreamsOf(server: Server | null, project: string | null): ReadonlyMap<string, number> {
  const file = server && project && join(server.files.sitesPath, `${project}.caddy`);
  if (!file || !existsSync(file)) return new Map();
  return new Map(servicesIn(readFileSync(file, "utf8")).map(({ service, port }) => [service, port]));
}

/** From the host, a service in a container of its own cannot be checked. */
function elsewhere({ server }: DoctorContext): string {
  const there = "docker compose exec hotpush hotpush doctor";
  return server === null ? ` If it has a container of its own, run the doctor in it: ${there}` : "";
}
