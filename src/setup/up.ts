import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { gitHostOf, type HostedRepository, parseHostedRepository } from "#config/git-hosts";
import type { Environment } from "#config/settings";
import { compareVersions, neededCompose } from "#platform/compose";
import { attempt } from "#platform/files";
import { parseGitRemoteUrl } from "#platform/git";
import { type Argv, outputOf } from "#platform/run-command";
import { openSsh, readSshSettings, remoteCommandLine, type SshConnection, sshFailed } from "#platform/ssh";
import { CommandError } from "#problems";
import type { SignedRequest } from "#send/send";
import { readVersion } from "#version";
import { type AccessScreen, isRemote, unfinished } from "./clone.ts";
import { repositoryOf } from "./connect.ts";
import { hostApis } from "./host-apis.ts";
import { addressesOf, askFromOutside } from "./outside.ts";
import { chooseProjectName, parseRemoteUrl, readRemoteUrl } from "./project.ts";
import { findOwnImage, ownImage, ownRoot, sources, sourcesDigest, sourcesLabel } from "./start.ts";

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
  /** The git host as known_hosts names it, and its lines there; none if git does not use ssh. */
  readonly gitServer: { readonly name: string; readonly keys: string };
}

/** What the command line gives. */
export interface UpOptions {
  readonly repository?: string;
  /** The repository at its host, if the name of the host does not show it. */
  readonly api?: UpPlan["repository"];
  readonly url?: URL;
  readonly project?: string;
  readonly page?: URL;
}

export interface UpScreen extends Pick<AccessScreen, "say" | "readToken"> {
  /** Whether the person agrees. */
  readonly mayDo: (question: string) => Promise<boolean>;
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
  ...(["architecture", "missing", "docker", "compose", "hotpush", "digest"] as const),
] as const;

/** What a step works with. */
interface Context {
  readonly plan: UpPlan;
  readonly screen: UpScreen;
  readonly facts: Facts;
  readonly env: NodeJS.ProcessEnv;
  /** null: nothing is run, only printed. */
  readonly ssh: SshConnection | null;
  /** That of the git host, as the input of a command; "" without one. */
  readonly token: string;
}

/** Its title, and what it does: only what is missing. */
type Step = readonly [string, (context: Context) => Promise<void>];

/** What is done on the server, in this order. Each step looks at what is there, so an interrupted run can be repeated. */
function stepsOf({ name }: UpPlan): readonly Step[] {
  return [
    ["Packages of the distribution", installPackages],
    ["Docker", installDocker],
    [`Hotpush ${readVersion()}`, installHotpush],
    [`Clone into ${checkoutOf(name)}`, cloneRepository],
    [`Set up ${name}`, initProject],
    ["Webhook", connectProject],
    ["First deployment", deployFirst],
  ];
}

/**
 * Plans what is set up by what the command line and the checkout of the working directory say.
 *
 * @param askUrl asks where the project of this name is reached; null: nobody can be asked
 * @throws CommandError if something is not known, with the option that says it
 */
export async function planUp(
  server: string,
  given: UpOptions,
  env: NodeJS.ProcessEnv,
  askUrl: (name: string) => Promise<URL | null>,
): Promise<UpPlan> {
  const wanted = given.repository ?? (await readRemoteUrl(process.cwd()));
  if (wanted === null || !isRemote(wanted))
    throw new CommandError("Say which repository: --repository git@github.com:octo/shop.git");
  // A page's address is fine too, where everybody knows that of its ssh.
  const known = parseHostedRepository(wanted);
  const address = known === null ? wanted : `git@${known.url.host}:${known.url.pathname.slice(1)}.git`;
  const parsed = parseRemoteUrl(address);
  if (parsed === null) throw new CommandError(`${address} does not name a repository.`);
  const isNew = { known: null, former: null, others: new Map<string, string>() };
  const name = chooseProjectName({ path: parsed.path, given: given.project ?? null, ...isNew });
  const url = given.url ?? (await askUrl(name));
  if (url === null)
    throw new CommandError("Say where the project is reached: --url https://shop.example.org");
  return {
    server,
    remote: address,
    repository: given.api ?? repositoryOf(parsed, gitHostOf(parsed)),
    name,
    url,
    page: given.page ?? null,
    gitServer: await readGitServer(address, env),
  };
}

/** What this machine knows of the git host, so that the server need not believe whoever answers there first. */
async function readGitServer(address: string, env: NodeJS.ProcessEnv): Promise<UpPlan["gitServer"]> {
  const { scheme, host, port, user, path } = parseGitRemoteUrl(address);
  if (scheme !== "ssh" || host === null) return { name: "", keys: "" };
  const given: Argv = ["ssh", ...(port === null ? [] : ["-p", String(port)])];
  const settings = await readSshSettings(given, host, { env });
  const [[hostname = host], [portText = "22"]] = [settings("hostname"), settings("port")];
  const isAlias = hostname !== host && (await addressesOf(host)).length === 0;
  if (isAlias || (hostname === host && portText !== String(port ?? 22))) {
    const login = `${user ?? "git"}@${hostname}`;
    const named =
      portText === "22" && !address.includes(`/${path}`)
        ? `${login}:${path}`
        : `ssh://${login}:${portText}/${path}`;
    throw new CommandError(
      `The settings of ssh on this machine lead from ${host} to port ${portText} of ${hostname}, and the server does not have them. Name that: --repository ${named}`,
    );
  }
  const nameOf = (at: string, on: string) => (on === "22" ? at : `[${at}]:${on}`);
  const name = nameOf(host, String(port ?? 22));
  // The settings may lead to the same host at another name, and perhaps port.
  const names = [...new Set([name, nameOf(hostname, portText)])];
  const files = ["userknownhostsfile", "globalknownhostsfile"].flatMap(settings);
  const paths = files
    .flatMap((text) => text.split(" "))
    .map((file) => file.replace(/^~(?=\/)/, env.HOME ?? "~"));
  const find = (file: string) => names.map((one) => outputOf(["ssh-keygen", "-F", one, "-f", file], { env }));
  const found = (await Promise.all(paths.flatMap(find))).join("\n");
  const keys = new Set([...found.matchAll(/^[^#@\s]\S* (.*)$/gm)].map(([, key]) => `${name} ${key}\n`));
  if (keys.size > 0) return { name, keys: [...keys].join("") };
  const login = `ssh -T ${port === null ? "" : `-p ${port} `}${user ?? "git"}@${host}`;
  throw new CommandError(
    `This machine does not know the key of ${host}, so the server could not either. Compare the fingerprint that this shows with the one that the git host publishes, and run this again: ${login}`,
  );
}

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
    const { repository } = plan;
    const isAsked = repository !== null && ssh !== null;
    const token = isAsked ? await screen.readToken(repository, hostApis[repository.host].token) : null;
    const context = { plan, screen, facts, env, ssh, token: token?.reveal() ?? "" };
    for (const [title, act] of stepsOf(plan)) {
      screen.say(`==> ${title}`);
      await act(context);
    }
    if (ssh === null) return 0;
    screen.saveServer(plan.server.startsWith("ssh://") ? plan.server : `ssh://${plan.server}`);
    screen.say(`==> Ask ${plan.name} from here`);
    const fault = await askServed(context);
    screen.say(`    ${fault ?? `${plan.url.host} leads to the server; app and webhook answer`}`);
    const seconds = Math.round((performance.now() - startedMs) / 1_000);
    screen.say(`${plan.name} is set up on ${plan.server} (${seconds} s).`);
    const link = await ask(context, ["hotpush", "open", "--json"]);
    if (link !== null && plan.page !== null) await screen.openPage(readPageLink(link, plan.page));
    return fault === null ? 0 : 1;
  } finally {
    await ssh?.close();
  }
}

/**
 * Reads the link that the server gives. The browser here opens nothing but the page that was agreed on: the server may be anybody's.
 *
 * @throws CommandError if it is another address
 */
export function readPageLink(answer: string, page: URL): string {
  const said = attempt(() => Object(JSON.parse(answer)).url as unknown, null);
  const link = typeof said === "string" ? URL.parse(said) : null;
  if (link?.protocol === "https:" && link.host === page.host) return link.href;
  throw new CommandError(
    `The server does not give a link to the page at ${page.origin}. On the server, run: hotpush open`,
  );
}

/** What an interrupted run has started may still run: the next command waits for its end. */
const lock = ["flock", "--close", "/run/hotpush-up.lock"] as const;

/**
 * Runs a command as root, after printing it.
 *
 * @param other an exit code that is no failure either
 * @returns the exit code
 * @throws CommandError if it is another one
 */
async function run(
  { plan: { server }, screen, facts, ssh }: Context,
  argv: Argv,
  { input = "", other = 0 }: { readonly input?: string | Argv; readonly other?: number } = {},
): Promise<number> {
  const before = typeof input === "string" ? "" : `(here) ${remoteCommandLine(input)} | `;
  screen.say(`    ${before}${remoteCommandLine(asRoot(facts, argv))}`);
  const code = ssh === null ? 0 : await ssh.run(asRoot(facts, [...lock, ...argv]), input);
  if (code === 0 || code === other) return code;
  const isLost = code === sshFailed || code === null;
  throw new CommandError(
    isLost
      ? `The connection to ${server} was lost. Run the same command again: it goes on from there.`
      : `This failed on ${server} (exit code ${code}), for the reason above. When that is fixed, run the same command again.`,
  );
}

/** Asks something as root. @returns null if the command fails, and with --dry-run */
async function ask({ ssh, facts }: Context, argv: Argv): Promise<string | null> {
  return ssh === null ? null : await ssh.ask(asRoot(facts, argv));
}

function asRoot({ user }: Facts, argv: Argv): Argv {
  return user === "0" ? argv : ["sudo", "-n", ...argv];
}

const neededPackages = ["ca-certificates", "git", "openssh-client", "libatomic1", "libstdc++6"];
const neededDocker = "25";
const neededMiB = 4 * 1024;
const home = "/opt/hotpush";
/** In it, the digest of the sources that an earlier run has sent. */
const digestFile = "sources.sha256";

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
echo "digest='$($sudo cat ${home}/${digestFile} 2>/dev/null)'"
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

/**
 * On a new server, cloud-init and the system's own timers hold apt's locks. It waits by itself only for that of dpkg; this waits for
 * those of the lists and of the archives as well, for two minutes.
 */
const aptGet = [
  "env",
  "DEBIAN_FRONTEND=noninteractive",
  "LC_ALL=C",
  "sh",
  "-c",
  'said=$(mktemp); for i in $(seq 24); do code=0; apt-get -q -o DPkg::Lock::Timeout=300 "$@" 2>"$said" || code=$?; grep -q "Unable to lock" "$said" || break; sleep 5; done; cat "$said" >&2; rm "$said"; exit $code',
  "apt-get",
] as const;
const update = [...aptGet, "update"] as const;
const install = [...aptGet, "install", "--yes", "--no-install-recommends"] as const;

async function installPackages(context: Context): Promise<void> {
  const { missing } = context.facts;
  if (missing === "") return;
  await run(context, update);
  await run(context, [...install, ...missing.split(" ")]);
}

/** The distribution's Docker if it is new enough, else that of Docker's own repository. */
async function installDocker(context: Context): Promise<void> {
  const { facts, plan, screen, ssh } = context;
  if (facts.docker !== "") {
    if (compareVersions(facts.compose || "0", neededCompose) >= 0) return;
    throw new CommandError(
      `Docker is there, and its plugin compose is ${facts.compose || "missing"}; ${neededCompose} or newer is needed: https://docs.docker.com/compose/install/linux/`,
    );
  }
  if ((await ask(context, ["sh", "-c", "command -v dockerd"])) === null) {
    const policy = await ask(context, ["apt-cache", "policy", "docker.io", ...composePackages]);
    const compose = composePackages.find((name) => isOffered(policy, name, neededCompose));
    const isOwn = ssh === null || (isOffered(policy, "docker.io", neededDocker) && compose !== undefined);
    const from = isOwn ? `of ${facts.distribution}` : "of Docker's own repository, download.docker.com";
    if (ssh !== null && !(await screen.mayDo(`Install Docker ${from} on ${plan.server}?`)))
      throw new CommandError(`Docker is not installed. Install it on ${plan.server}, or agree: --yes`);
    if (isOwn) await installOwnDocker(context, compose ?? "docker-compose");
    else await installDockersDocker(context);
  }
  // Without systemd, or after an earlier run that was interrupted, it may not run yet.
  const start =
    "docker version >/dev/null 2>&1 || systemctl enable --now docker 2>/dev/null || service docker start; for i in $(seq 60); do docker version >/dev/null 2>&1 && exit; sleep 0.5; done; docker version";
  await run(context, ["sh", "-c", start]);
}

/** As Debian and Ubuntu call compose's plugin. */
const composePackages = ["docker-compose-v2", "docker-compose"];

/** Some releases have docker's client and buildx in packages of their own. */
async function installOwnDocker(context: Context, compose: string): Promise<void> {
  const policy = await ask(context, ["apt-cache", "policy", "docker-cli", "docker-buildx"]);
  const others = ["docker-cli", "docker-buildx"].filter((name) => isOffered(policy, name, "0"));
  await run(context, [...install, "docker.io", compose, ...others]);
}

/** As https://docs.docker.com/engine/install/debian/ describes it. */
async function installDockersDocker(context: Context): Promise<void> {
  const { distribution, codename } = context.facts;
  const origin = `https://download.docker.com/linux/${distribution}`;
  const key = "/etc/apt/keyrings/docker.asc";
  await run(context, [...install, "curl"]);
  await run(context, ["install", "-m", "0755", "-d", "/etc/apt/keyrings"]);
  await run(context, ["curl", "-fsSL", `${origin}/gpg`, "-o", key]);
  const source = `Types: deb\nURIs: ${origin}\nSuites: ${codename}\nComponents: stable\nSigned-By: ${key}\n`;
  await run(context, ["tee", "/etc/apt/sources.list.d/docker.sources"], { input: source });
  await run(context, update);
  const plugins = ["docker-buildx-plugin", "docker-compose-plugin"];
  await run(context, [...install, "docker-ce", "docker-ce-cli", "containerd.io", ...plugins]);
}

/** @param policy what `apt-cache policy` prints */
function isOffered(policy: string | null, name: string, needed: string): boolean {
  const own = policy?.split(/^(?=\S)/m).find((part) => part.startsWith(`${name}:`));
  const [, version] = /^ +Candidate: (?:\d+:)?(\d[\d.]*)/m.exec(own ?? "") ?? [];
  return version !== undefined && compareVersions(version, needed) >= 0;
}

const fresh = "/opt/hotpush.new";

/**
 * Brings the Hotpush of this machine: its image is that of this machine's Docker, or is built there from these very sources, and
 * the program gets its node and its packages from that image.
 */
async function installHotpush(context: Context): Promise<void> {
  const { facts, plan, env } = context;
  const { hotpush } = facts;
  const order = hotpush === "" ? -1 : compareVersions(hotpush, readVersion());
  const digest = sourcesDigest();
  // Without a digest, a person has installed it there.
  if (order === 0 && ["", digest].includes(facts.digest)) return;
  if (order > 0)
    throw new CommandError(
      `${plan.server} has Hotpush ${hotpush}, and this is ${readVersion()}. Update the one here first.`,
    );
  await run(context, ["rm", "-rf", fresh]);
  await run(context, ["mkdir", "-p", fresh]);
  const names = [...sources, "LICENSE"].filter((name) => existsSync(join(ownRoot, name)));
  // On macOS, tar would add files of its own.
  const pack: Argv = ["env", "COPYFILE_DISABLE=1", "tar", "-cf", "-", "-C", ownRoot, ...names];
  await run(context, ["tar", "--no-same-owner", "-xf", "-", "-C", fresh], { input: pack });
  // Neither may others change what root runs, nor a strict umask here keep the image's user from reading it.
  await run(context, ["chmod", "-R", "u+rwX,go=rX", fresh]);
  const label = `${sourcesLabel}=${digest}`;
  const image = await findOwnImage(env);
  if (image?.isOfTheseSources && image.architecture === facts.architecture)
    await run(context, ["docker", "load", "--quiet"], { input: ["docker", "save", ownImage] });
  else await run(context, ["docker", "build", "--tag", ownImage, "--label", label, fresh]);
  const take =
    'id=$(docker create "$1"); docker cp -q "$id:/usr/local/lib/hotpush/node_modules" "$2/"; mkdir -p "$2/node_modules/.bin"; docker cp -q "$id:/usr/local/bin/node" "$2/node_modules/.bin/node"; docker rm "$id" >/dev/null; echo "$3" >"$2/$4"';
  await run(context, ["sh", "-ec", take, "sh", ownImage, fresh, digest, digestFile]);
  const upgrade = '[ ! -e /etc/hotpush/compose.yaml ] || "$1/bin/hotpush" upgrade --yes';
  // Before it takes its place: from then on this step is done.
  if (hotpush !== "") await run(context, ["sh", "-ec", upgrade, "sh", fresh]);
  const put =
    'rm -rf "$1.old"; [ ! -e "$1" ] || mv "$1" "$1.old"; mv "$2" "$1"; ln -sfn "$1/bin/hotpush" /usr/local/bin/hotpush';
  await run(context, ["sh", "-ec", put, "sh", home, fresh]);
}

function checkoutOf(name: string): string {
  return `/srv/${name}`;
}

async function cloneRepository(context: Context): Promise<void> {
  const { plan, screen, token } = context;
  const { remote, name, url, gitServer } = plan;
  // Nothing that is known there is replaced.
  const learn = 'ssh-keygen -F "$1" >/dev/null || { umask 077; mkdir -p ~/.ssh; cat >>~/.ssh/known_hosts; }';
  if (gitServer.keys !== "")
    await run(context, ["sh", "-c", learn, "sh", gitServer.name], { input: gitServer.keys });
  const options = ["--url", url.href, ...hostOptions(context)];
  const clone: Argv = ["hotpush", "clone", remote, checkoutOf(name), ...options];
  while ((await run(context, clone, { input: token, other: unfinished })) === unfinished)
    if (!(await screen.hasDone("the key is added")))
      throw new CommandError("Add that key at the git host, and run the same command again.");
}

async function initProject(context: Context): Promise<void> {
  const { name, url, page, repository } = context.plan;
  const host = repository === null ? [] : ["--host", repository.host];
  const ofPage = page === null ? [] : ["--page", page.origin];
  const options = ["--yes", "--no-form", "--project", name, "--url", url.href, ...host, ...ofPage];
  await run(context, ["env", "-C", checkoutOf(name), "hotpush", "init", ...options]);
}

/** Whether the webhook can be reached is asked from outside at the end. */
async function connectProject(context: Context): Promise<void> {
  const { plan, screen, facts, token, ssh } = context;
  const connect = ["hotpush", "connect", ...hostOptions(context)];
  await run(context, ["env", "-C", checkoutOf(plan.name), ...connect], { input: token, other: unfinished });
  if (token !== "" || ssh === null) return;
  const show = asRoot(facts, ["grep", "^WEBHOOK_SECRET=", `/etc/hotpush/projects/${plan.name}.env`]);
  screen.say(`To see the secret: ssh ${plan.server} ${show.join(" ")}`);
  await screen.hasDone("the webhook is added");
}

/** They say which repository is meant, and let the command read the token from its input. */
function hostOptions({ plan: { repository }, token, ssh }: Context): readonly string[] {
  if (repository === null) return [];
  const read = token === "" && ssh !== null ? [] : ["--token-file", "-"];
  return ["--repository", `${repository.host}+${repository.url.href}`, ...read];
}

/** As visitors and the git host do. @returns what is wrong, and what to do; null: nothing */
async function askServed(context: Context): Promise<string | null> {
  const { name, url, server } = context.plan;
  const send: Argv = ["hotpush", "send", "--dry-run", "--project", name, "--url", url.href];
  const signed = await ask(context, [...send, "--print"]);
  if (signed === null) return `The server has signed no push. On the server: ${send.join(" ")}`;
  // As this machine reaches it: behind NAT, the server itself sees another address.
  const [hostname = ""] = (await readSshSettings(["ssh"], server, context))("hostname");
  const all = await addressesOf(hostname);
  const typed = all.find((one) => one.includes(".")) ?? all[0];
  return await askFromOutside(url, typed ?? context.facts.address, JSON.parse(signed) as SignedRequest);
}

async function deployFirst(context: Context): Promise<void> {
  const { name } = context.plan;
  const history = await ask(context, ["hotpush", "history", "--project", name, "--json"]);
  if (history?.includes('"state":"succeeded"')) return;
  await run(context, ["hotpush", "deploy", "--project", name]);
}
