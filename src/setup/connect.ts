import { existsSync } from "node:fs";
import {
  type GitHost,
  gitHostOf,
  type HostedRepository,
  parseHostedRepository,
  statusHosts,
} from "#config/git-hosts";
import { untilRight } from "#platform/async";
import { parseGitRemoteUrl } from "#platform/git";
import { hasSucceeded } from "#platform/run-command";
import { CommandError } from "#problems";
import { readSendSettings, type SendSettings, send } from "#send/send";
import {
  type AccessScreen,
  askRemote,
  deployKeyTitle,
  giveDeployKey,
  readDeployKey,
  removeDeployKey,
  unfinished,
} from "./clone.ts";
import {
  deliveryText,
  failedOf,
  type HostedDelivery,
  hostApis,
  isSuccess,
  openRepository,
  type RepositoryAtHost,
} from "./host-apis.ts";
import { parseRemoteUrl, readRemoteUrl } from "./project.ts";
import { chooseAnyProject } from "./server.ts";
import { type GitRemote, payloadName } from "./webhook-form.ts";

export interface ConnectOptions {
  /** The repository at its host; default: COMMIT_STATUS_URL, else that of the remote. */
  readonly repository?: HostedRepository;
  readonly project?: string;
  /** false: git's access to the remote stays as it is. */
  readonly key?: boolean;
  /** Take webhook and deploy key away. */
  readonly remove?: boolean;
  /** Only have the host send again what failed. */
  readonly redeliver?: boolean;
}

/** What is connected: a project of this machine, and its repository at the host. */
export interface Connection extends SendSettings {
  /** The file with the secret. */
  readonly settingsFile: string;
  readonly remote: GitRemote | null;
  /** null: its host has no API that Hotpush knows. */
  readonly repository: HostedRepository | null;
  /** Whether a person or the settings name that host, or everybody knows it: the owner of a checkout writes its remote. */
  readonly isHostNamed: boolean;
  /** REPOSITORY, if it is set. */
  readonly deployed: string | undefined;
  /** Whether git reads the remote over ssh. */
  readonly usesSsh: boolean;
  /** Whether DEPLOY_AFTER is set, so that checks are to be sent as well. */
  readonly hasChecks: boolean;
}

export interface ConnectScreen extends AccessScreen {
  /** Shows what a person types into the host's form instead of a token. */
  readonly showForm: (connection: Connection) => void;
}

/**
 * Makes the webhook of the project at its git host, and a deploy key with which its checkout is read; or compares and repairs both,
 * or takes them away, or has the host send again what failed. The token is used for these calls only.
 *
 * @returns the exit code: `unfinished` if the webhook is there but does not reach this service, or is to be made with the form, without a
 * token; 1 if nothing could be done without one
 * @throws CommandError if the host refuses; the next run goes on from there
 */
export async function connect(
  options: ConnectOptions,
  env: NodeJS.ProcessEnv,
  screen: ConnectScreen,
): Promise<number> {
  const connection = await findConnection(options, env);
  const { repository } = connection;
  if (repository !== null && options.repository === undefined) refuseDoubtful(connection, repository);
  if (repository !== null && !options.remove) refuseUnusable(connection, repository);
  const token = repository && (await screen.readToken(repository, hostApis[repository.host].token));
  if (repository === null || token === null) {
    const byHand = `Without one, do it in the webhook's settings at the git host: ${connection.url.href}`;
    const isForm = !options.remove && !options.redeliver;
    if (isForm) screen.showForm(connection);
    else screen.say(`This takes a token (--token-file <path>). ${byHand}`);
    return isForm ? unfinished : 1;
  }
  const host = openRepository({ ...repository, token }, connection.secret);
  if (options.remove) return await disconnect(connection, host, options, screen);
  if (options.redeliver) return await redeliver(connection, host, screen);
  const hook = await makeRight(connection, host, options, screen);
  return await tryIt(connection, host, hook, screen);
}

/** Reads what the project's file, its remote and the command line say. @throws CommandError without a project */
export async function findConnection(
  options: Pick<ConnectOptions, "repository" | "project">,
  env: NodeJS.ProcessEnv,
): Promise<Connection> {
  const directory = process.cwd();
  const settings = await readSendSettings(env, directory, undefined, options.project);
  const { project } = chooseAnyProject(env, directory, options.project);
  const checkout = project?.env.REPO_PATH;
  if (checkout && !existsSync(checkout))
    throw new CommandError(
      `The checkout of ${project.name}, ${checkout}, is not there. Clone it again, or delete webhook and deploy key at the git host by hand.`,
    );
  const remoteUrl = await readRemoteUrl(settings.directory);
  const remote = remoteUrl === null ? null : parseRemoteUrl(remoteUrl);
  const host = options.repository?.host ?? settings.host ?? (remote && gitHostOf(remote));
  const known = parseHostedRepository((project?.env ?? env).COMMIT_STATUS_URL ?? "");
  const named = options.repository ?? known;
  const repository = named ?? repositoryOf(remote, host);
  return {
    ...settings,
    remote,
    host,
    settingsFile: project?.file ?? ".env",
    repository,
    isHostNamed:
      named !== null || (repository !== null && parseHostedRepository(repository.url.href) !== null),
    deployed: (project?.env ?? env).REPOSITORY,
    usesSsh: remoteUrl !== null && parseGitRemoteUrl(remoteUrl).scheme === "ssh",
    hasChecks: Boolean((project?.env ?? env).DEPLOY_AFTER),
  };
}

/** The repository of a remote at a host of that kind; null: it has no API that Hotpush knows. */
export function repositoryOf(remote: GitRemote | null, host: GitHost | null): HostedRepository | null {
  const known = statusHosts.find((one) => one === host);
  return remote && known ? parseHostedRepository(`${known}+${remote.origin}/${remote.path}`) : null;
}

/** @throws CommandError if only a person can say that the token may go there */
function refuseDoubtful({ isHostNamed }: Connection, { host, url }: HostedRepository): void {
  const isPlain = url.protocol === "http:";
  if (isHostNamed && !isPlain) return;
  const doubt = isPlain
    ? `The token would go to ${url.host} in plain text. If that is meant`
    : `The remote of the checkout names ${url.host}. If the token may go there`;
  throw new CommandError(`${doubt}: --repository ${host}+${url.href}`);
}

const signingTokenBytes = 32;

/** @throws CommandError before the host is asked anything */
function refuseUnusable(
  { secret, deployed, settingsFile, remote }: Connection,
  { host, url }: HostedRepository,
): void {
  const name = payloadName(url.pathname.slice(1), host);
  const known = [name, payloadName(remote?.path ?? "", host)].map((one) => one.toLowerCase());
  if (deployed && !known.includes(deployed.toLowerCase()))
    throw new CommandError(
      `${settingsFile} has only pushes of ${deployed} deployed, and the webhook would be one of ${name}. If the repository was renamed, write there: REPOSITORY=${name}`,
    );
  const key = Buffer.from(secret.replace(/^whsec_/, ""), "base64");
  if (host !== "gitlab" || (secret.startsWith("whsec_") && key.length === signingTokenBytes)) return;
  throw new CommandError(
    `GitLab takes only a signing token of ${signingTokenBytes} bytes (whsec_ and base64) as the secret. Make one, and run this again: echo whsec_$(openssl rand -base64 ${signingTokenBytes}) | hotpush secret rotate --stdin`,
  );
}

/**
 * Brings the host to exactly one webhook and one key of the project. It may fail or be killed between any two calls: the next run
 * finds what is there.
 *
 * @returns the webhook's id
 */
async function makeRight(
  connection: Connection,
  host: RepositoryAtHost,
  { key: wantsKey = true }: ConnectOptions,
  { say }: ConnectScreen,
): Promise<string> {
  const { directory, usesSsh, hasChecks } = connection;
  // Before anything is made, the host has shown that the token may see both.
  const hooks = await host.listHooks(connection.url);
  const needsKey = usesSsh && wantsKey;
  const keys = needsKey ? await host.listKeys() : [];
  const hook = await host.saveHook(hooks[0]?.id ?? null, connection.url.href, hasChecks);
  if (hook.isSigned === false) {
    await host.removeHook(hook.id);
    throw new CommandError(
      `${host.url.host} does not sign what its webhooks send: that takes GitLab 19.0 or newer. Update it, and run this again.`,
    );
  }
  for (const { id } of hooks) if (id !== hook.id) await host.removeHook(id);
  if (needsKey) say(await giveDeployKey(directory, deployKeyTitle(connection.url), host, keys));
  const did = hooks.length === 0 ? "is made" : "was there, and has its secret and settings again";
  const pushes = `sends the pushes${hasChecks ? " and checks" : ""} of ${host.url.pathname.slice(1)} to ${connection.url.href}`;
  say(`The webhook ${did}: ${host.name} ${pushes}.`);
  if (hooks.length > 1) say(`Removed were ${hooks.length - 1} more webhooks with this address.`);
  return hook.id;
}

const answersWithinMs = 15_000;
const pauseMs = 1_000;

/** Asks the host for a ping if it sends them; else sends a signed push that runs nothing. */
async function tryIt(
  connection: Connection,
  host: RepositoryAtHost,
  hook: string,
  { say }: ConnectScreen,
): Promise<number> {
  if (connection.usesSsh && !hasSucceeded(await askRemote(connection.directory)))
    say("git cannot read the remote yet. To see why, and what helps: hotpush doctor");
  if (host.api.pings !== true) {
    const { isGood, text } = await send({ ...connection, isDryRun: true });
    say(isGood ? text : `The webhook is there, and a test push to ${connection.url.href} failed. ${text}`);
    return isGood ? 0 : unfinished;
  }
  const before = await host.listDeliveries(hook);
  await host.ping(hook);
  const { name } = host;
  let ping: HostedDelivery | undefined;
  const isMissing = async () => {
    const listed = await host.listDeliveries(hook);
    ping = listed.find(({ id, event }) => event === "ping" && !before.some((one) => one.id === id));
    return ping === undefined ? "no answer yet" : null;
  };
  await untilRight(isMissing, { withinMs: answersWithinMs, pauseMs });
  if (ping === undefined)
    say(`${name} has not said yet what its ping was answered. See the webhook's page there.`);
  else if (isSuccess(ping.status)) say(`${name} has sent a ping, which was answered: pushes arrive.`);
  else {
    const answered = ping.status === 0 ? "got no answer" : `was answered with ${ping.status}`;
    say(
      `The webhook is there, and ${name}'s ping ${answered}. To see why: hotpush send --dry-run, hotpush doctor, and whether DNS and firewall let ${name} in.`,
    );
    return unfinished;
  }
  return 0;
}

/** Has the host send again what failed, the oldest first: each is a hint to look at the branch, so none rolls anything back. */
async function redeliver(
  connection: Connection,
  host: RepositoryAtHost,
  { say }: ConnectScreen,
): Promise<number> {
  const { name } = host;
  const { href } = connection.url;
  if (host.api.deliveries === undefined)
    throw new CommandError(
      `${name} has no call that sends a delivery again. To deploy the newest commit: hotpush deploy`,
    );
  const [hook] = await host.listHooks(connection.url);
  if (hook === undefined)
    throw new CommandError(`${name} has no webhook to ${href}. Make it: hotpush connect`);
  const failed = failedOf(await host.listDeliveries(hook.id));
  if (failed.length === 0) {
    say(`${name} lists no delivery to ${href} that failed.`);
    return 0;
  }
  for (const { id } of failed) await host.sendAgain(hook.id, id);
  say(`${name} sends again what failed: ${failed.map(deliveryText).join("; ")}. See: hotpush history`);
  return 0;
}

async function disconnect(
  connection: Connection,
  host: RepositoryAtHost,
  { key: takesKey = true }: ConnectOptions,
  { say }: ConnectScreen,
): Promise<number> {
  const { directory } = connection;
  const hooks = await host.listHooks(connection.url);
  const key = takesKey ? await readDeployKey(directory) : null;
  const hasKey = takesKey && (connection.usesSsh || key !== null);
  const title = deployKeyTitle(connection.url);
  const keys = hasKey ? (await host.listKeys()).filter((one) => one.title === title) : [];
  for (const { id } of hooks) await host.removeHook(id);
  for (const { id } of keys) await host.removeKey(id);
  if (key !== null) await removeDeployKey(directory);
  const noKey = hasKey ? ", and no deploy key of this project" : "";
  say(`${host.name} has no webhook to ${connection.url.href} any more${noKey}.`);
  return 0;
}
