import { existsSync } from "node:fs";
import { dirname } from "node:path";
import { type Branch, branches } from "../../config/settings.ts";
import { credentialsPath } from "../../config/state-path.ts";
import { isInContainer } from "../../platform/docker/mountinfo.ts";
import { sshOverHttps } from "../../platform/git-remote-url.ts";
import {
  type CheckFinding,
  type Fault,
  type Fix,
  gitIn,
  ok,
  problem,
  quote,
  skip,
  warning,
} from "../check.ts";
import type { DoctorContext } from "../context.ts";
import type { RemoteCause, RemoteFailure } from "./probe-remote.ts";
import { overriddenSshCommand, readSshSettings } from "./ssh.ts";

/** Asks the remote as the script will: without a terminal, with the service's keys and tokens. */
export async function checkRemote(context: DoctorContext): Promise<CheckFinding> {
  const answer = await context.remote();
  if (answer.kind === "unasked") return skip("git does not work in the repository yet");
  if (answer.kind === "none") return withoutOrigin(answer.others, context);
  if (answer.kind === "refs") return ok(answer.url.text);
  const overridden = answer.url.scheme === "ssh" ? await overriddenSshCommand(context) : null;
  if (overridden !== null) return overridden;
  const { cause } = answer;
  if (cause === "host-key-changed" || cause === "host-key-unknown")
    return skip("the key of the git host comes first");
  return await faultOf[cause](answer, context);
}

function withoutOrigin([other]: readonly string[], { repoPath }: DoctorContext): Fault {
  const text = 'The repository has no remote named "origin", so nothing can be pulled.';
  const command = `${gitIn(repoPath)} remote`;
  if (other !== undefined) return problem(text, `${command} rename ${quote(other)} origin`);
  return problem(text, { change: `${command} add origin <address of your repository>` });
}

type FaultOf = (failure: RemoteFailure, context: DoctorContext) => Fault | Promise<Fault>;

/** The fault of each cause but that of the host key, which has a check of its own. */
const faultOf: Record<Exclude<RemoteCause, `host-key-${string}`>, FaultOf> = {
  name: ({ url: { host, text } }, context) =>
    problem(`DNS does not know the name ${host} (${text}). Is it spelt right, and does DNS work here?`, {
      command: `getent hosts ${quote(host ?? "")} || cat /etc/resolv.conf`,
      ...setUrl(context, "<the right address>"),
    }),
  refused: (failure, context) => {
    const text = `${serverOf(failure)} refuses the connection: nothing listens there, or a firewall rejects it.`;
    return problem(text, otherWay(failure, context));
  },
  timeout: (failure, context) => {
    const text = `${serverOf(failure)} does not answer within 5 s: it is down, or a firewall drops the connection.`;
    return problem(text, otherWay(failure, context));
  },
  clock: ({ url }) => {
    const text = `The certificate of ${url.host} is not valid at the time of the clock here. See clock.`;
    return problem(text, "date");
  },
  certificate: ({ url }) => {
    const command = "apt-get install --reinstall -y ca-certificates && update-ca-certificates";
    return problem(`The certificate of ${url.host} cannot be verified.`, command);
  },
  "no-ssh": () => {
    const command = "apt-get install -y openssh-client";
    return problem("The remote needs ssh, which is not installed.", command);
  },
  "key-open": ({ lines }) => {
    const key = /Permissions \d+ for '([^']+)'/.exec(lines)?.[1] ?? "~/.ssh/id_ed25519";
    const text = `Other users can read the private key ${key}, so ssh does not use it.`;
    return problem(text, `chmod 600 ${quote(key)}`);
  },
  denied: (failure, context) =>
    failure.url.scheme === "ssh" ? keyRefused(failure, context) : tokenRefused(failure, context),
  asks: ({ url }, context) => {
    const text = `${url.text} asks for a name and a password, and nobody is there to type them. Make a token with read access to the repository at the git host; this command asks for it once and stores it:`;
    return problem(text, storeCommand(context));
  },
  "not-found": ({ url }, context) => {
    const text = `${url.text} does not exist, or it is private and this user's key or token may not read it (git hosts do not say which). Is it spelt right?`;
    return problem(text, setUrl(context, "<the right address>"));
  },
  unknown: ({ url, lines }, { repoPath }) => {
    const reason = lines.trim().split("\n").at(-1) || "git gave no reason";
    return problem(`git cannot read ${url.text}: ${reason}`, `${gitIn(repoPath)} ls-remote origin`);
  },
};

function serverOf({ url: { host, port } }: RemoteFailure): string {
  return `${host}${port === null ? "" : ` port ${port}`}`;
}

function setUrl({ repoPath }: DoctorContext, address: string): { readonly change: string } {
  return { change: `${gitIn(repoPath)} remote set-url origin ${address}` };
}

/** For networks that let only https out. */
function otherWay({ url: { scheme, host, path } }: RemoteFailure, context: DoctorContext): Fix {
  const other = scheme === "ssh" ? sshOverHttps.get(host ?? "") : undefined;
  if (other === undefined) return setUrl(context, "<an address that can be reached from here>");
  return setUrl(context, quote(`ssh://git@${other}:443/${path}`)).change;
}

/** The git host needs the public half of a key, in a form. */
async function keyRefused({ url }: RemoteFailure, context: DoctorContext): Promise<Fault> {
  const { keys } = await readSshSettings(url, context);
  const text = `${url.host} refuses the keys of this user (permission denied). Print the public key and add it in the repository's settings there, as a deploy key with read access:`;
  return problem(text, printPublicKey(keys));
}

function printPublicKey(keys: readonly string[]): string {
  const present = keys.find((key) => existsSync(key));
  if (present !== undefined) return `ssh-keygen -y -f ${quote(present)}`;
  const fresh = keys.find((key) => key.endsWith("ed25519")) ?? keys[0] ?? "~/.ssh/id_ed25519";
  const make = `mkdir -p -m 700 ${quote(dirname(fresh))} && ssh-keygen -q -t ed25519 -N '' -f ${quote(fresh)}`;
  return `${make} && cat ${quote(`${fresh}.pub`)}`;
}

function tokenRefused({ url }: RemoteFailure, context: DoctorContext): Fault {
  const text = `${url.text} refuses the name or the token of this user: it may have expired. Make a new token with read access to the repository; this command asks for it and stores it:`;
  return problem(text, storeCommand(context));
}

/**
 * When the host has accepted the token, `store` writes it to ~/.git-credentials, which only this user can read. In a
 * container that file is read-only, or lost with the container, so there the token is stored with the state.
 */
function storeCommand({ repoPath, statePath }: DoctorContext): string {
  const git = gitIn(repoPath);
  const helper = isInContainer() ? `store --file=${quote(credentialsPath(statePath))}` : "store";
  return `${git} config credential.helper ${quote(helper)} && ${git} ls-remote origin HEAD`;
}

/** A push of any other branch is ignored. */
export async function checkBranch(context: DoctorContext): Promise<CheckFinding> {
  const answer = await context.remote();
  if (answer.kind !== "refs") return skip("the remote does not answer");
  const found = branches.filter((name) => answer.refs.has(`refs/heads/${name}`));
  if (found.length > 0) return judgeSetting(context, found, answer.refs);
  const git = gitIn(context.repoPath);
  const hasCommit = (await context.readGit("rev-parse", "--verify", "HEAD")) !== null;
  const commit = `${git} commit --quiet --allow-empty --message "First commit" && `;
  const text = "The remote has neither main nor master, and a push of any other branch is ignored.";
  return problem(text, `${hasCommit ? "" : commit}${git} push origin HEAD:refs/heads/main`);
}

function judgeSetting(
  { branch, settings }: DoctorContext,
  found: readonly Branch[],
  refs: ReadonlyMap<string, string>,
): CheckFinding {
  const commitOf = (name: Branch) => refs.get(`refs/heads/${name}`);
  if (branch !== null && found.includes(branch)) {
    return ok(`${branch} is at ${commitOf(branch)?.slice(0, 7)}`);
  }
  const head = found.find((name) => commitOf(name) === refs.get("HEAD")) ?? found[0] ?? "main";
  const fix = settings.set("BRANCH", head);
  if (branch === null) {
    const text = `BRANCH is not set, so main and master are both deployed: anyone who can create the other one at the git host controls what runs, however ${head} is protected.`;
    return warning(text, fix);
  }
  return problem(`BRANCH is ${branch}, but the remote has only ${head}: its pushes are ignored.`, fix);
}
