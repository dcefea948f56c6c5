import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import type { HostedRepository } from "#config/commit-status";
import type { Secret } from "#config/secret";
import type { Environment } from "#config/settings";
import { compareVersions, neededCompose } from "#platform/compose";
import { type Argv, outputOf } from "#platform/run-command";
import { openSsh, remoteCommandLine, type SshConnection, sshFailed } from "#platform/ssh";
import { CommandError } from "#problems";
import { readVersion } from "#version";
import { needsKey } from "./clone.ts";
import { hostApis } from "./host-apis.ts";
import { askFromOutside } from "./outside.ts";
import { ownImage, ownRoot, sources, sourcesDigest, sourcesLabel } from "./start.ts";

/** What is set up, and where. */
export interface UpPlan {
  /** As ssh takes it. */
  readonly server: string;
  /** What git clones there. */
  readonly remote: string;
  /** The repository at its host; null: its host has no API that Hotpush knows. */
  readonly repository: HostedRepository | null;
  /** The name of the project on the server. */
  readonly name: string;
  /** Where its git host and its visitors reach it. */
  readonly url: URL;
  /** Where people reach the page; null: there is none. */
  readonly page: URL | null;
  /** Lines of known_hosts with the key of the git host. */
  readonly hostKeys: readonly string[];
}

export interface UpScreen {
  readonly say: (text: string) => void;
  /** Whether the person agrees to `what`. */
  readonly mayDo: (what: string) => Promise<boolean>;
  /** Gets the token of the git host; null: there is none. */
  readonly readToken: (repository: HostedRepository, needs: string) => Promise<Secret | null>;
  /** Waits until the person says that `what` is done; false: nobody can be asked. */
  readonly hasDone: (what: string) => Promise<boolean>;
  /** Called when the server answers commands: what `--server` takes. */
  readonly saveServer: (address: string) => void;
  /** Shows the page. The link signs in once. */
  readonly openPage: (link: string) => Promise<void>;
}

/** What `lookScript` says of the server; a member is empty if it is not there. */
type Facts = Readonly<Record<(typeof factNames)[number], string>>;

const factNames = [
  ...(["system", "distribution", "codename", "user", "sudo", "freeKiB", "address"] as const),
  ...(["architecture", "missing", "docker", "compose", "hotpush"] as const),
] as const;

/** What a step works with. */
interface Context {
  readonly plan: UpPlan;
  readonly screen: UpScreen;
  readonly facts: Facts;
  /** Runs a command as root, after printing it. @throws CommandError unless it exits with 0 */
  readonly run: (argv: Argv, input?: string | Argv) => Promise<void>;
  /** As `run`, but its exit code is for the caller. */
  readonly tryRun: (argv: Argv, input?: string | Argv) => Promise<number>;
  /** Asks something as root; null if the command fails, and with --dry-run. */
  readonly ask: (argv: Argv) => Promise<string | null>;
  /** Gives the token as the input of a command; "" without one. */
  readonly token: () => Promise<string>;
  readonly env: NodeJS.ProcessEnv;
  readonly isDry: boolean;
}

interface Step {
  readonly title: (plan: UpPlan) => string;
  /** Each does only what is missing. */
  readonly run: (context: Context) => Promise<void>;
}

/** What is done on the server, in this order. Each step looks at what is there, so an interrupted run can be repeated. */
const steps: readonly Step[] = [
  { title: () => "Packages of the distribution", run: installPackages },
  { title: () => "Docker", run: installDocker },
  { title: () => `Hotpush ${readVersion()}`, run: installHotpush },
  { title: ({ name }) => `Clone into ${checkoutOf(name)}`, run: cloneRepository },
  { title: ({ name }) => `Set up ${name}`, run: initProject },
  { title: () => "Webhook", run: connectProject },
  { title: () => "First deployment", run: deployFirst },
];

/**
 * Brings a bare server to a served and pushed-to project, from another machine, over ssh.
 *
 * @returns the exit code: 1 if something is left for a person
 * @throws CommandError if a step fails, with its reason; the same command goes on from there
 */
export async function up(
  plan: UpPlan,
  env: NodeJS.ProcessEnv,
  screen: UpScreen,
  isDry: boolean,
): Promise<number> {
  const startedMs = performance.now();
  screen.say(`==> Sign in to ${plan.server}`);
  const ssh = isDry ? null : await openSsh(plan.server, env);
  if (ssh === null && !isDry)
    throw new CommandError(
      `ssh does not get in to ${plan.server}, for the reason above. If it does not know the server's key, compare it with the one that the provider shows: ssh ${plan.server}`,
    );
  try {
    const facts = ssh === null ? readFacts(null) : await look(ssh, plan);
    const context = makeContext(ssh, plan, screen, facts, env);
    for (const { title, run } of steps) {
      screen.say(`==> ${title(plan)}`);
      await run(context);
    }
    if (ssh === null) return 0;
    screen.saveServer(plan.server.startsWith("ssh://") ? plan.server : `ssh://${plan.server}`);
    const isRight = await askOutside(plan, facts, screen);
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    screen.say(`${plan.name} is set up on ${plan.server} (${seconds} s).`);
    const link = await context.ask(["hotpush", "open", "--json"]);
    if (link !== null) await screen.openPage((JSON.parse(link) as { readonly url: string }).url);
    return isRight ? 0 : 1;
  } finally {
    await ssh?.close();
  }
}

function makeContext(
  ssh: SshConnection | null,
  plan: UpPlan,
  screen: UpScreen,
  facts: Facts,
  env: NodeJS.ProcessEnv,
): Context {
  const asRoot = (argv: Argv): Argv => (facts.user === "0" ? argv : ["sudo", "-n", ...argv]);
  const tryRun: Context["tryRun"] = async (argv, input) => {
    const before = Array.isArray(input) ? `(here) ${remoteCommandLine(input as Argv)} | ` : "";
    screen.say(`    ${before}${remoteCommandLine(asRoot(argv))}`);
    const code = ssh === null ? 0 : await ssh.run(asRoot([...lock, ...argv]), input);
    if (code !== sshFailed && code !== null) return code;
    throw new CommandError(
      `The connection to ${plan.server} was lost. Run the same command again: it goes on from there.`,
    );
  };
  let token: Promise<Secret | null> | null = null;
  return {
    plan,
    screen,
    facts,
    tryRun,
    async run(argv, input) {
      const code = await tryRun(argv, input);
      if (code !== 0) throw failed(plan, argv, code);
    },
    ask: async (argv) => (ssh === null ? null : await ssh.ask(asRoot(argv))),
    async token() {
      const { repository } = plan;
      if (repository === null || ssh === null) return "";
      token ??= screen.readToken(repository, hostApis[repository.host].token);
      return (await token)?.reveal() ?? "";
    },
    env,
    isDry: ssh === null,
  };
}

function failed({ server }: UpPlan, argv: Argv, code: number): CommandError {
  const command = argv.slice(0, 3).join(" ");
  return new CommandError(
    `This failed on ${server} (exit code ${code}), for the reason above: ${command} … When that is fixed, run the same command again.`,
  );
}

const neededPackages = ["ca-certificates", "git", "openssh-client", "libatomic1", "libstdc++6"];
const neededDocker = "25";
const neededMiB = 4 * 1024;

/** One round trip. What it prints is the content of an env file. */
const lookScript = `
[ ! -r /etc/os-release ] || . /etc/os-release
sudo=; [ "$(id -u)" = 0 ] || sudo="sudo -n"
echo "system='$(uname -s)'"
echo "distribution='$ID'"
echo "codename='$VERSION_CODENAME'"
echo "user='$(id -u)'"
echo "architecture='$(dpkg --print-architecture 2>/dev/null)'"
$sudo true 2>/dev/null && echo "sudo='yes'"
set -- $(df -Pk /var | tail -n 1); echo "freeKiB='$4'"
set -- $SSH_CONNECTION; echo "address='$3'"
for package in ${neededPackages.join(" ")}; do
  dpkg-query --show --showformat '\${Status}' "$package" 2>/dev/null | grep -q ' installed$' || missing="$missing $package"
done
echo "missing='$missing'"
echo "docker='$($sudo docker version --format '{{.Server.Version}}' 2>/dev/null)'"
echo "compose='$($sudo docker compose version --short 2>/dev/null)'"
echo "hotpush='$($sudo hotpush --version 2>/dev/null)'"
`;

/** @throws CommandError if the server cannot be used */
async function look(ssh: SshConnection, { server }: UpPlan): Promise<Facts> {
  const facts = readFacts((await ssh.ask(["sh", "-c", lookScript])) ?? "");
  const { system, distribution, user, sudo, missing, docker } = facts;
  const isDebian = distribution === "debian" || distribution === "ubuntu";
  const freeMiB = Math.floor(Number(facts.freeKiB) / 1024);
  const refusals: readonly (readonly [boolean, string])[] = [
    [system !== "Linux", `${server} runs ${system || "no sh"}, and Hotpush deploys on Linux only.`],
    [
      user !== "0" && sudo === "",
      `This user of ${server} may not become root without a password. Sign in as root (hotpush up root@…), or let sudo ask for none.`,
    ],
    [
      !isDebian && (missing !== "" || docker === ""),
      `${server} runs ${distribution || "an unknown distribution"}. hotpush up installs Docker on Debian and Ubuntu only. On others, follow "Install" of the README.`,
    ],
    [
      docker !== "" && compareVersions(docker, neededDocker) < 0,
      `Docker on ${server} is ${docker}; ${neededDocker} or newer is needed. Update it: https://docs.docker.com/engine/install/`,
    ],
    [
      freeMiB < neededMiB && facts.hotpush === "",
      `${server} has ${freeMiB} MiB of free disk space in /var; ${neededMiB} are needed.`,
    ],
  ];
  const refusal = refusals.find(([isRefused]) => isRefused);
  if (refusal !== undefined) throw new CommandError(refusal[1]);
  return facts;
}

/** Nothing is known of a server that is not looked at. */
function readFacts(text: string | null): Facts {
  const unseen = { distribution: "debian", user: "0", missing: neededPackages.join(" ") };
  const found: Environment = text === null ? unseen : parseEnv(text);
  return Object.fromEntries(factNames.map((name) => [name, found[name]?.trim() ?? ""])) as Facts;
}

/** What an interrupted run has started may still run: the next command waits for its end. */
const lock = ["flock", "--close", "/run/hotpush-up.lock"] as const;

const aptGet = [
  "env",
  "DEBIAN_FRONTEND=noninteractive",
  "apt-get",
  "-q",
  "-o",
  "DPkg::Lock::Timeout=300",
] as const;
const install = [...aptGet, "install", "--yes", "--no-install-recommends"] as const;

async function installPackages({ facts: { missing }, run }: Context): Promise<void> {
  if (missing === "") return;
  await run([...aptGet, "update"]);
  await run([...install, ...missing.split(" ")]);
}

/** The distribution's Docker if it is new enough, else that of Docker's own repository. */
async function installDocker(context: Context): Promise<void> {
  const { facts, plan, screen, run, ask, isDry } = context;
  if (facts.docker !== "") {
    if (compareVersions(facts.compose || "0", neededCompose) >= 0) return;
    throw new CommandError(
      `Docker is there, and its plugin compose is ${facts.compose || "missing"}; ${neededCompose} or newer is needed: https://docs.docker.com/compose/install/linux/`,
    );
  }
  if ((await ask(["sh", "-c", "command -v dockerd"])) === null) {
    const policy = await ask(["apt-cache", "policy", "docker.io", ...composePackages]);
    const compose = composePackages.find((name) => isOffered(policy, name, neededCompose));
    const isOwn = isDry || (isOffered(policy, "docker.io", neededDocker) && compose !== undefined);
    const from = isOwn ? `of ${facts.distribution}` : "of Docker's own repository, download.docker.com";
    if (!isDry && !(await screen.mayDo(`install Docker ${from} on ${plan.server}`)))
      throw new CommandError(`Docker is not installed. Install it on ${plan.server}, or agree: --yes`);
    if (isOwn) await installOwnDocker(context, compose ?? "docker-compose");
    else await installDockersDocker(context);
  }
  // Without systemd, or after an earlier run that was interrupted, it may not run yet.
  const start =
    "docker version >/dev/null 2>&1 || systemctl enable --now docker 2>/dev/null || service docker start; for i in $(seq 60); do docker version >/dev/null 2>&1 && exit; sleep 0.5; done; docker version";
  await run(["sh", "-c", start]);
}

/** As Debian and Ubuntu call compose's plugin. */
const composePackages = ["docker-compose-v2", "docker-compose"];

/** Some releases have docker's client and buildx in packages of their own. */
async function installOwnDocker({ ask, run }: Context, compose: string): Promise<void> {
  const policy = await ask(["apt-cache", "policy", "docker-cli", "docker-buildx"]);
  const others = ["docker-cli", "docker-buildx"].filter((name) => isOffered(policy, name, "0"));
  await run([...install, "docker.io", compose, ...others]);
}

/** As https://docs.docker.com/engine/install/debian/ describes it. */
async function installDockersDocker({ run, facts: { distribution, codename } }: Context): Promise<void> {
  const origin = `https://download.docker.com/linux/${distribution}`;
  const key = "/etc/apt/keyrings/docker.asc";
  await run([...install, "curl"]);
  await run(["install", "-m", "0755", "-d", "/etc/apt/keyrings"]);
  await run(["curl", "-fsSL", `${origin}/gpg`, "-o", key]);
  const source = `Types: deb\nURIs: ${origin}\nSuites: ${codename}\nComponents: stable\nSigned-By: ${key}\n`;
  await run(["tee", "/etc/apt/sources.list.d/docker.sources"], source);
  await run([...aptGet, "update"]);
  const plugins = ["docker-buildx-plugin", "docker-compose-plugin"];
  await run([...install, "docker-ce", "docker-ce-cli", "containerd.io", ...plugins]);
}

/** @param policy what `apt-cache policy` prints */
function isOffered(policy: string | null, name: string, needed: string): boolean {
  const own = policy?.split(/^(?=\S)/m).find((part) => part.startsWith(`${name}:`));
  const [, version] = /^ +Candidate: (?:\d+:)?(\d[\d.]*)/m.exec(own ?? "") ?? [];
  return version !== undefined && compareVersions(version, needed) >= 0;
}

const home = "/opt/hotpush";
const fresh = "/opt/hotpush.new";

/**
 * Brings the Hotpush of this machine: its image is that of this machine's Docker, or is built there from these very sources, and
 * the program gets its node and its packages from that image.
 */
async function installHotpush({ facts, plan, run, env }: Context): Promise<void> {
  const { hotpush } = facts;
  const order = hotpush === "" ? -1 : compareVersions(hotpush, readVersion());
  if (order === 0) return;
  if (order > 0)
    throw new CommandError(
      `${plan.server} has Hotpush ${hotpush}, and this is ${readVersion()}. Update the one here first.`,
    );
  await run(["rm", "-rf", fresh]);
  await run(["mkdir", "-p", fresh]);
  const names = [...sources, "LICENSE"].filter((name) => existsSync(join(ownRoot, name)));
  // On macOS, tar would add files of its own.
  const pack: Argv = ["env", "COPYFILE_DISABLE=1", "tar", "-cf", "-", "-C", ownRoot, ...names];
  await run(["tar", "-xf", "-", "-C", fresh], pack);
  const label = `${sourcesLabel}=${sourcesDigest()}`;
  if (await hasImageFor(facts.architecture, env))
    await run(["docker", "load", "--quiet"], ["docker", "save", ownImage]);
  else await run(["docker", "build", "--tag", ownImage, "--label", label, fresh]);
  const take =
    'id=$(docker create "$1"); docker cp -q "$id:/usr/local/lib/hotpush/node_modules" "$2/"; mkdir -p "$2/node_modules/.bin"; docker cp -q "$id:/usr/local/bin/node" "$2/node_modules/.bin/node"; docker rm "$id" >/dev/null';
  await run(["sh", "-ec", take, "sh", ownImage, fresh]);
  const put = 'rm -rf "$1.old"; [ ! -e "$1" ] || mv "$1" "$1.old"; mv "$2" "$1"';
  await run(["sh", "-ec", put, "sh", home, fresh]);
  await run(["ln", "-sfn", `${home}/bin/hotpush`, "/usr/local/bin/hotpush"]);
  if (hotpush !== "") await run(["hotpush", "upgrade", "--yes"]);
}

/** Whether this machine's Docker has the image of these very sources, for the processor of the server. */
async function hasImageFor(architecture: string, env: NodeJS.ProcessEnv): Promise<boolean> {
  const format = `{{.Architecture}} {{index .Config.Labels "${sourcesLabel}"}}`;
  const found = await outputOf(["docker", "image", "inspect", "--format", format, ownImage], { env });
  return found === `${architecture} ${sourcesDigest()}`;
}

export function checkoutOf(name: string): string {
  return `/srv/${name}`;
}

async function cloneRepository(context: Context): Promise<void> {
  const { plan, screen, tryRun } = context;
  const { remote, name, url, hostKeys } = plan;
  const keys = hostKeys.flatMap((line) => ["--host-key", line]);
  const [given, token] = await tokenFor(context);
  const at: Argv = ["hotpush", "clone", remote, checkoutOf(name), "--url", url.href, ...keys, ...given];
  for (;;) {
    const code = await tryRun(at, token);
    if (code === 0) return;
    if (code !== needsKey) throw failed(plan, at, code);
    if (await screen.hasDone("the key is added")) continue;
    throw new CommandError("Add that key at the git host, and run the same command again.");
  }
}

async function initProject({ plan, run }: Context): Promise<void> {
  const { name, url, page, repository } = plan;
  const host = repository === null ? [] : ["--host", repository.host];
  const ofPage = page === null ? [] : ["--page", page.origin];
  const options = ["--yes", "--no-form", "--project", name, "--url", url.href, ...host, ...ofPage];
  await run(["env", "-C", checkoutOf(name), "hotpush", "init", ...options]);
}

/** Its exit code is 1 if the webhook is there but cannot be reached yet, which is asked from outside at the end. */
async function connectProject(context: Context): Promise<void> {
  const { plan, screen, tryRun, isDry, facts } = context;
  const [given, token] = await tokenFor(context);
  await tryRun(["env", "-C", checkoutOf(plan.name), "hotpush", "connect", ...given], token);
  if (token !== "" || isDry) return;
  const secret = `grep ^WEBHOOK_SECRET= /etc/hotpush/projects/${plan.name}.env`;
  screen.say(`To see the secret: ssh ${plan.server} ${facts.user === "0" ? "" : "sudo "}${secret}`);
  await screen.hasDone("the webhook is added");
}

/** The options that say which repository is meant, and let the command read the token from its input. */
async function tokenFor({ plan: { repository }, token, isDry }: Context) {
  const text = await token();
  const named = repository === null ? [] : ["--repository", `${repository.host}+${repository.url.href}`];
  const read = text === "" && !(isDry && repository !== null) ? [] : ["--token-file", "-"];
  return [[...named, ...read], text] as const;
}

async function deployFirst({ plan: { name }, ask, run }: Context): Promise<void> {
  const history = await ask(["hotpush", "history", "--project", name, "--json"]);
  const { deployments = [] } = JSON.parse(history ?? "{}") as {
    readonly deployments?: readonly { readonly state: string }[];
  };
  if (deployments.some(({ state }) => state === "succeeded")) return;
  await run(["hotpush", "deploy", "--project", name]);
}

async function askOutside({ url, name }: UpPlan, { address }: Facts, { say }: UpScreen): Promise<boolean> {
  say(`==> Ask ${name} from here`);
  const answers = await askFromOutside(url, address);
  for (const { claim, fault } of answers) say(fault === null ? `    ${claim}` : `    ${fault}`);
  return answers.every(({ fault }) => fault === null);
}
