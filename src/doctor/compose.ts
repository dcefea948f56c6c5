import { type ComposeService, compareVersions, neededCompose } from "#platform/compose";
import { getJson, neededApi, nullIfMissing } from "#platform/docker/engine";
import { ownUid, readUser } from "#platform/files";
import { quote } from "#platform/ssh";
import { modeOf, namesRunToTheirEnd, writableVolume } from "#rollout/project";
import { findExposedFiles } from "#setup/build-context";
import { type Check, type DoctorContext, hasComposeFile } from "./context.ts";
import { type Finding, ok, okUnless, problem, skip, warning } from "./finding.ts";
import { upstreamsOf } from "./server.ts";

const noFile = skip("the repository has no compose file");
/** What the packages of a distribution are called, and how old they are, differs. */
const installPage = "https://docs.docker.com/engine/install/";

export const dockerChecks: readonly Check[] = [
  {
    id: "docker",
    about: "both",
    claim: "this user may use the Docker engine, and it is new enough",
    fix: "restarts the engine, names the page with the steps that install it, or adds this user to the group of its socket",
    probe: checkDocker,
  },
  {
    id: "compose",
    claim: "docker compose is new enough, and can read its file",
    fix: "names the page with the steps that install it, or shows the error of compose",
    async probe({ compose }) {
      const answer = await compose();
      if (answer.kind === "no-file") return noFile;
      const { version } = answer;
      if (version === null || compareVersions(version, neededCompose) < 0)
        return problem(
          `docker compose is ${version ?? "missing"}; ${neededCompose} or newer is needed. Install it: ${installPage}`,
        );
      if (answer.kind === "swarm") return ok("a stack of a Swarm");
      if (answer.kind === "model") return ok(Object.keys(answer.model.services).join(", "));
      return problem(`docker compose cannot read the project: ${answer.lines.join(" ")}`);
    },
  },
  {
    id: "services",
    claim:
      "two containers of each service can run side by side, one that gets requests has a health check, all start again after a crash and a reboot, and no image gets .env or .git",
    fix: "is the line of the compose file. Or it excludes files from images. A health check in a Dockerfile counts too. What only the proxy needs is removed; or it is the label `hotpush.rollout: recreate`, if the service may be down for seconds",
    probe: checkServices,
  },
];

/** Containers are replaced through the socket. */
async function checkDocker(context: DoctorContext): Promise<Finding> {
  const { settings, repoPath, server } = context;
  if (server === null && !hasComposeFile(repoPath, settings.env)) return noFile;
  const answer = await context.engine();
  if (answer.kind === "answers") {
    const { version, apiVersion } = answer;
    if (compareVersions(apiVersion, neededApi) >= 0) return ok(`Docker ${version}, API ${apiVersion}`);
    return problem(`Docker is ${version}; 25 or newer is needed. Install it: ${installPage}`);
  }
  const { code, socketPath, text } = answer;
  if (socketPath === null) return problem(text);
  if (code === "EACCES") {
    const refused = `This user (uid ${ownUid()}) may not open ${socketPath}; its group may. Then restart the service. As root:`;
    const group = `$(stat --format %G ${quote(socketPath)})`;
    return problem(
      refused,
      `usermod --append --groups "${group}" ${quote(readUser(ownUid(), 0).name ?? "")}`,
    );
  }
  const missing = `If it is not installed: ${installPage} If it is:`;
  return problem(`The Docker engine does not answer: ${text} ${missing}`, "systemctl restart docker");
}

/** Looks at the services that run on, as compose resolves its file. */
async function checkServices(context: DoctorContext): Promise<Finding> {
  const answer = await context.compose();
  if (answer.kind === "no-file") return noFile;
  if (answer.kind === "swarm") return skip("a Swarm has rules of its own: docs/swarm.md");
  if (answer.kind !== "model") return skip("docker compose cannot read the file yet");
  const { services } = answer.model;
  const once = namesRunToTheirEnd(services);
  const meant = Object.entries(services).filter(([name]) => !once.has(name));
  const found = await Promise.all(
    meant.map(async ([name, service]) => [
      ...(isSideBySide(name, service)
        ? [await healthFault(name, service, context), clashFault(name, service)]
        : []),
      restartFault(name, service),
    ]),
  );
  const exposed = findExposedFiles(services).map(({ text, command }) =>
    warning(text, context.asUser(command)),
  );
  return okUnless([...found.flat(), ...exposed], Object.keys(services).join(", "));
}

/** Whether two containers of a service may run at once. A proxy of the compose file reads the live files. */
function isSideBySide(name: string, service: ComposeService): boolean {
  const label = service.labels?.["hotpush.rollout"] ?? null;
  const hasData = label === null && writableVolume(service) !== null;
  const isProxy = service.volumes?.some(({ target }) => target === "/run/live") ?? false;
  return name !== "hotpush" && !isProxy && !hasData && label !== "recreate";
}

/** A written "no" is intended: the service runs once. Of both, compose takes the policy in `deploy`. */
function restartFault(name: string, { restart = "", deploy }: ComposeService): Finding | null {
  const policy = deploy?.restart_policy && (deploy.restart_policy.condition ?? "any");
  if (["always", "unless-stopped", "no", "any", "none"].includes(policy ?? restart)) return null;
  const text = `${name} does not start again after a crash or a reboot. If it runs once, write restart: "no".`;
  const change = policy ? "deploy.restart_policy.condition: any" : "restart: unless-stopped";
  return warning(text, { change: `services.${name}.${change}` });
}

/** Without a health check, a container counts as ready after 3 s, even if it does not answer. */
async function healthFault(name: string, service: ComposeService, context: DoctorContext) {
  const { healthcheck, ports = [], expose = [] } = service;
  if (healthcheck && !healthcheck.disable) return null;
  // On a server, init takes the ports out of the compose file, and the site says who gets requests.
  const upstreams = upstreamsOf(context.server, context.project);
  const declared = upstreams.size > 0 ? undefined : (ports[0]?.target ?? expose[0]);
  const port = upstreams.get(name) ?? declared;
  if (port === undefined || (!healthcheck?.disable && (await hasHealthcheck(name, service, context))))
    return null;
  const text = `${name} has no health check: requests go to a new container before it can answer them. For example:`;
  const url = `http://localhost:${Number.parseInt(String(port), 10)}/`;
  const times = "interval: 10s, start_period: 30s, start_interval: 500ms";
  const change = `services.${name}.healthcheck: {test: ["CMD", "curl", "-f", "${url}"], ${times}}`;
  return warning(text, { change });
}

/** A HEALTHCHECK of its Dockerfile counts too, if the image exists already. */
async function hasHealthcheck(name: string, service: ComposeService, { engine, compose }: DoctorContext) {
  const docker = await engine();
  const answer = await compose();
  if (docker.kind !== "answers" || answer.kind !== "model") return false;
  const { image = `${answer.model.name}-${name}` } = service;
  const path = `/images/${encodeURIComponent(image)}/json`;
  type Image = { readonly Config: { readonly Healthcheck?: object | null } };
  const found = await nullIfMissing(getJson<Image>(docker.engine, path));
  return Boolean(found?.Config.Healthcheck);
}

/** Two containers cannot share a port of the host, a name, an address or another's network: the old one has to stop first. */
function clashFault(name: string, service: ComposeService): Finding | null {
  const isLive = service.labels?.["hotpush.rollout"] === "live";
  const found = modeOf(isLive ? service : { ...service, labels: {} }, false);
  if (found.how !== "recreate") return null;
  const text = `${name} is down while it is replaced, because two containers of it would clash (${found.reason}). Let the proxy publish its port, or accept that by the label hotpush.rollout: recreate.`;
  return warning(text, { change: `services.${name}: remove ${found.reason.replace(/^publishes /, "")}` });
}
