import { join } from "node:path";
import { type ComposeService, compareVersions, hiddenFileHint, neededCompose } from "#platform/compose";
import { listContainers } from "#platform/docker/containers";
import { getJson, neededApi, nullIfMissing } from "#platform/docker/engine";
import { isServing } from "#platform/docker/health";
import { attempt, findProgram, kindOf, ownUid, readUser } from "#platform/files";
import { type Argv, hasSucceeded, outputOf, runCommand } from "#platform/run-command";
import { quote } from "#platform/ssh";
import { readSecretFile } from "#redaction";
import { modeOf, namesRunToTheirEnd, writableVolume } from "#rollout/project";
import { findExposedFiles } from "#setup/build-context";
import { runContainer } from "#setup/server";
import { type Check, type DoctorContext, hasComposeFile } from "./context.ts";
import { type Finding, ok, okUnless, problem, skip, warning } from "./finding.ts";
import { machineCompose } from "./in-run.ts";
import { upstreamsOf } from "./server.ts";

const noFile = skip("the repository has no compose file");
/** What the packages of a distribution are called, and how old they are, differs. */
const installPage = "https://docs.docker.com/engine/install/";

export const dockerChecks: readonly Check[] = [
  {
    id: "docker",
    about: "both",
    claim: "this user may use the Docker engine, it is new enough, and its logins can be read",
    fix: "restarts the engine, names the page with the steps that install it, adds this user to the group of its socket, or names a missing credential helper",
    probe: checkDocker,
  },
  {
    id: "compose",
    claim:
      "docker compose is new enough, reads its file, and has the same version for deployments and at the prompt",
    fix: "names the page with the steps that install it, shows the error of compose, or runs the compose that deployments use",
    async probe(context) {
      const answer = await context.compose();
      if (answer.kind === "no-file") return noFile;
      const { version } = answer;
      if (version === null || compareVersions(version, neededCompose) < 0)
        return problem(
          `docker compose is ${version ?? "missing"}; ${neededCompose} or newer is needed. Install it: ${installPage}`,
        );
      if (answer.kind === "swarm") return ok("a stack of a Swarm");
      if (answer.kind === "model") {
        const { services } = answer.model;
        const found: (Finding | null)[] = Object.entries(services).flatMap(contextFaults);
        const blank = "is not set where deploy.sh runs, and is blank in the compose file.";
        found.push(
          ...answer.unset.map((name) => warning(`${name} ${blank}`, { change: `${name}=… in .env` })),
        );
        found.push(...(await versionFaults(version, context)));
        return okUnless(found, Object.keys(services).join(", "));
      }
      const said = answer.lines.join(" ");
      const missing = said.match(/\/[^\s:,"'`]+/g)?.find((path) => kindOf(path) === "missing") ?? null;
      return problem(`docker compose cannot read the project: ${said}`, { missing });
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
    if (compareVersions(apiVersion, neededApi) >= 0)
      return okUnless(helperFaults(context), `Docker ${version}, API ${apiVersion}`);
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

/** Docker asks these programs for the passwords of registries, if its settings name some. */
function helperFaults({ scriptEnv, project, server }: DoctorContext): readonly Finding[] {
  // The service itself pulls nothing.
  if (server !== null && project === null) return [];
  const file = join(scriptEnv.DOCKER_CONFIG ?? join(scriptEnv.HOME ?? "/", ".docker"), "config.json");
  type Logins = { readonly credsStore?: string; readonly credHelpers?: Readonly<Record<string, string>> };
  const { credsStore, credHelpers = {} }: Logins = attempt(() => JSON.parse(readSecretFile(file)), {});
  const named = [credsStore ?? [], Object.values(credHelpers)].flat();
  const isMissing = (name: string) => findProgram(`docker-credential-${name}`, scriptEnv.PATH ?? "") === null;
  return [...new Set(named)].filter(isMissing).map((name) => {
    const text = `${file} names the credential helper docker-credential-${name}, which is missing where deploy.sh runs: pulls and builds that ask it fail.`;
    const change = `remove it from ${file}, and log in again: docker login. To give a static program to \`run\` instead: docs/server.md`;
    return problem(text, { change }, name === credsStore ? "problem" : "warning");
  });
}

/** A build needs its directories where deploy.sh runs. Another machine may build what has a name as well. */
function contextFaults([name, { build, image }]: readonly [string, ComposeService]): readonly Finding[] {
  type Build = { readonly context?: string; readonly additional_contexts?: Readonly<Record<string, string>> };
  const { context = "", additional_contexts: others = {} } = Object(build) as Build;
  const paths = [context, ...Object.values(others)].filter((path) => path.startsWith("/"));
  const lacking = paths.filter((path) => kindOf(path) === "missing");
  return lacking.map((missing) => {
    const text = `The build of ${name} needs ${missing}, which does not exist where deploy.sh runs. ${hiddenFileHint("not found")}`;
    return problem(text, { missing }, image === undefined ? "problem" : "warning");
  });
}

/** What this version of compose does wrong with its builder, and with the version at the prompt of the machine. */
async function versionFaults(own: string, context: DoctorContext) {
  const { settings, repoPath, server, scriptEnv: env, user } = context;
  // As the owner: the client takes plugins from the home that `env` names.
  const said = await outputOf(["docker", "buildx", "version"], { env, user });
  const [, buildx = "1"] = / v(\d[\d.]*)/.exec(said ?? "") ?? [];
  const isOld = compareVersions(own, "5") >= 0 && compareVersions(buildx, "0.17") < 0;
  const needed = `docker buildx is ${buildx}; compose ${own} needs 0.17 or newer to build. Install it: ${installPage}`;
  const exec = `docker exec --workdir ${quote(repoPath)} ${runContainer} docker compose up --detach`;
  const prompt = settings.env[machineCompose] || own;
  const buggy = [...new Set([own, prompt])].filter((version) => buggyVersions.includes(version));
  const faults = buggy.map((version) =>
    warning(
      `docker compose ${version} recreates containers though nothing has changed. Install another version: ${installPage}`,
    ),
  );
  const text = `Deployments use docker compose ${own}, and at the prompt ${prompt} is used: each recreates what the other has started, databases too. Install the same version. Until then use that of deployments:`;
  const isOther = !buggy.includes(prompt) && hashesOf(prompt) !== hashesOf(own);
  return [
    isOld ? problem(needed) : null,
    ...faults,
    isOther ? warning(text, server ? exec : undefined) : null,
  ];
}

const buggyVersions = ["5.0.0", "5.0.1", "5.2.0"];

/** Compose sees by the hash of a service whether its container is current. At these versions the hash has changed. */
function hashesOf(version: string): number {
  return ["2.29.3", "5"].filter((first) => compareVersions(version, first) >= 0).length;
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
  const url = `http://127.0.0.1:${Number.parseInt(String(port), 10)}/`;
  const found = await findHealthTest(name, url, context);
  const advice = found
    ? "This one passes now:"
    : `For example, if the image has curl, and ${url} answers with success:`;
  const text = `${name} has no health check: requests go to a new container before it can answer them. ${advice}`;
  const times = "interval: 10s, start_period: 30s, start_interval: 500ms";
  const test = ["CMD", ...(found ?? requestsTo(url)[0])].map((word) => JSON.stringify(word)).join(", ");
  return warning(text, { change: `services.${name}.healthcheck: {test: [${test}], ${times}}` });
}

/** Commands that succeed if something answers at `url`; the last one if it is connected to. */
function requestsTo(url: string): readonly [Argv, ...Argv[]] {
  const { port } = new URL(url);
  return [
    ["curl", "-fsS", "-o", "/dev/null", url],
    ["wget", "-q", "-O", "/dev/null", url],
    [
      "node",
      "-e",
      `fetch('${url}').then((answer) => process.exit(answer.ok ? 0 : 1), () => process.exit(1))`,
    ],
    ["python3", "-c", `import urllib.request; urllib.request.urlopen('${url}')`],
    ["php", "-r", `exit(@file_get_contents('${url}') === false ? 1 : 0);`],
    ["bash", "-c", `: < /dev/tcp/127.0.0.1/${port}`],
  ];
}

/** The first that succeeds in a container that serves; null: none does, or there is none. */
async function findHealthTest(
  name: string,
  url: string,
  { engine, compose, scriptEnv: env, user }: DoctorContext,
) {
  const [docker, answer] = [await engine(), await compose()];
  if (docker.kind !== "answers" || answer.kind !== "model") return null;
  const container = (await listContainers(docker.engine, answer.model.name, name)).find(isServing);
  for (const test of container ? requestsTo(url) : []) {
    const argv = ["docker", "exec", container?.id ?? "", ...test] as const;
    if (hasSucceeded(await runCommand({ argv, env, user, timeoutMs: 5_000 }))) return test;
  }
  return null;
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
