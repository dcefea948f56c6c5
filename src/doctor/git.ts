import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { readCommitStatus, readSigners } from "#config/project";
import { branches } from "#config/settings";
import { findTokenFault } from "#notifications/commit-status";
import { readHostChecks } from "#notifications/host-checks";
import { makeScratch, ownUid, readUser, statOf } from "#platform/files";
import { type GitRemoteUrl, isRemoteName, reasonIn, withoutCredentials } from "#platform/git";
import { quote, readSshSettings } from "#platform/ssh";
import { checkOwnership, checkRepository, checkScript } from "#runner/script";
import { signatureProblem, verifyCommit } from "#runner/signatures";
import { hasLostDeployKey } from "#setup/clone";
import { deliveryText, failedOf, HostError, openRepository } from "#setup/host-apis";
import type { Check, DoctorContext, RemoteFailure } from "./context.ts";
import { type Finding, ok, problem, skip, warning } from "./finding.ts";

export const gitChecks: readonly Check[] = [
  {
    id: "repository",
    claim: "REPO_PATH is a checkout that git trusts, and that only its owner can change",
    fix: "clones the repository, lets git trust the owner, or takes the rights away from others",
    async probe(context) {
      const { repoPath, scriptEnv: environment, user } = context;
      const path = quote(repoPath);
      const fault = checkRepository(repoPath);
      const take = `chown -R ${user?.uid ?? ownUid()} ${path}`;
      if (fault?.code === "repository_not_accessible") return problem(firstSentence(fault.detail), take);
      const owner = fault === null ? await checkOwnership({ repoPath, environment, user }) : null;
      if (owner !== null) {
        const text = `${firstSentence(owner.detail)} If that is the wrong user, run as root instead: ${take}. To trust that user:`;
        return problem(text, context.asUser(`git config --global --add safe.directory ${path}`));
      }
      const root = fault === null ? await context.readGit("rev-parse", "--show-toplevel") : null;
      if (root === null) {
        const text = fault?.detail ?? `${repoPath} is not a git repository, so there is nothing to pull.`;
        return problem(text, { change: `git clone <address of your repository> ${path}` });
      }
      const paths = [repoPath, join(repoPath, "deploy.sh"), join(repoPath, ".git")];
      const open = paths.filter((one) => ((statOf(one)?.mode ?? 0) & 0o002) !== 0);
      if (open.length === 0) return ok(repoPath);
      const text = `Every user of this machine can write to ${open.join(" and ")}, and so controls what runs.`;
      return problem(text, `chmod o-w ${open.map(quote).join(" ")}`);
    },
  },
  {
    id: "remote",
    claim: "the remote answers without a prompt, and ssh knows its key",
    fix: "adds the key of the host, makes a deploy key and prints its public half, stores a token, or sets the address. Compare the printed fingerprint with the one that your git host publishes",
    async probe(context) {
      const answer = await context.remote();
      if (answer.kind === "unasked") return skip("git does not work in the repository yet");
      if (answer.kind === "refs") return ok(answer.url.text);
      if (answer.kind === "failed") return await remoteFault(answer, context);
      const add = `git -C ${quote(context.repoPath)} remote add ${answer.remote} <address of your repository>`;
      const text = `The repository has no remote named ${answer.remote}, so nothing can be pulled.`;
      return problem(text, { change: context.asUser(add) });
    },
  },
  {
    id: "branch",
    claim: "BRANCH is set, and the remote has that branch",
    fix: "sets BRANCH, or pushes what is checked out as `main`",
    async probe({ remote: askRemote, repoPath, value, settings, asUser }) {
      const answer = await askRemote();
      if (answer.kind !== "refs") return skip("the remote does not answer");
      const { refs, remote } = answer;
      const commitOf = (name: string) => refs.get(`refs/heads/${name}`);
      const found = branches.filter((name) => commitOf(name) !== undefined);
      const head = found.find((name) => commitOf(name) === refs.get("HEAD")) ?? found[0];
      if (head === undefined) {
        const push = `git -C ${quote(repoPath)} push ${quote(withoutCredentials(remote))} HEAD:refs/heads/main`;
        const text = "The remote has neither main nor master, and a push of any other branch is ignored.";
        return problem(text, asUser(push));
      }
      const branch = value("BRANCH") || null;
      if (branch !== null && found.includes(branch))
        return ok(`${branch} is at ${commitOf(branch)?.slice(0, 7)}`);
      const fix = settings.set("BRANCH", head);
      const ignored = `BRANCH is ${branch}, but the remote has only ${head}: its pushes are ignored.`;
      if (branch !== null) return problem(ignored, fix);
      const text = `BRANCH is not set, so main and master are both deployed: anyone who can create the other one at the git host controls what runs, however ${head} is protected.`;
      return warning(text, fix);
    },
  },
  {
    id: "content",
    claim:
      "submodules are at the commits that the repository names, and git-lfs is there if it has files in Git LFS",
    fix: "updates the submodules. Git LFS: apt-get install git-lfs; the next deployment fetches the files",
    async probe({ repoPath, readGit, asUser }) {
      const large = await readGit("ls-files", "--", ":(attr:filter=lfs)");
      const modules = await readGit("ls-files", "--", ".gitmodules");
      if (large === null) return skip("git does not work in the repository yet");
      if (large === "" && !modules) return skip("the repository has no submodules and no files in Git LFS");
      const missing = "git-lfs is missing, and files of the repository are in Git LFS: deploy.sh fails.";
      if (large !== "" && (await readGit("lfs", "version")) === null)
        return problem(missing, "apt-get install -y git-lfs");
      const states = await readGit("submodule", "status", "--recursive");
      const other = states?.split("\n").filter((line) => /^[-+U]/.test(line)) ?? ["git cannot tell"];
      if (other.length === 0) return ok("all of it is checked out");
      const text = `Submodules are not at the commits that the repository names: ${other.join("; ")}. An older deploy.sh does not update them: take update_submodules from examples/deploy.sh.`;
      const git = `git -C ${quote(repoPath)} submodule`;
      return warning(text, asUser(`${git} sync --recursive && ${git} update --init --recursive`));
    },
  },
  {
    id: "signers",
    claim: "the newest commit is signed by an allowed key, and only its owner can change the list of keys",
    fix: "takes the rights away from others. An unsigned commit needs a signed one after it: docs/signed-commits.md",
    probe: checkSigners,
  },
  {
    id: "commit-status",
    claim: "the token may show results on commits and, for DEPLOY_AFTER, read their checks",
    fix: "says which rights the token needs: docs/git-hosts.md. Nothing is shown on any commit",
    async probe(context) {
      const status = commitStatusOf(context);
      if (status === null) return skip("COMMIT_STATUS_URL is not set: no results are shown on commits");
      if ("fault" in status) return warning(status.fault);
      const { href } = status.url;
      const unasked = ({ code }: NodeJS.ErrnoException) =>
        `the host cannot be asked (${code ?? "unknown error"})`;
      const fault = await findTokenFault(status).catch(unasked);
      const change = "make a token with the rights that docs/git-hosts.md lists, and put it into that file";
      if (fault !== null) return warning(`No result is shown on commits of ${href}: ${fault}.`, { change });
      const head = await headOf(context);
      if (!context.value("DEPLOY_AFTER") || head === null)
        return ok(`the token may show results on commits of ${href}`);
      const checks = await readHostChecks(status, head.commit, head.branch, AbortSignal.timeout(10_000));
      if (checks.kind === "checks") return ok(`the token may read the checks of ${href}, and show results`);
      return problem(`Pushes wait for their checks, and none are read: ${checks.fault}`);
    },
  },
  {
    id: "deliveries",
    claim: "what the git host has sent to the webhook lately has arrived",
    fix: "has the host send it again, with a token that may change webhooks",
    async probe(context) {
      const { webhook: url, secret, project } = context;
      const status = commitStatusOf(context);
      if (status === null || "fault" in status || url === null || secret === null)
        return skip("to ask the host, it takes COMMIT_STATUS_TOKEN_FILE and WEBHOOK_URL");
      const host = openRepository(status, secret);
      const { name } = host;
      if (host.api.deliveries === undefined) return skip(`${name} lists nothing that it has sent`);
      try {
        const [hook] = await host.listHooks(url);
        if (hook === undefined) return skip(`the repository at ${name} has no webhook to ${url.href}`);
        const sent = await host.listDeliveries(hook.id);
        const failed = failedOf(sent).map(deliveryText);
        if (failed.length === 0) return ok(`of the newest ${sent.length} deliveries of ${name}, none failed`);
        const named = project === null ? "" : ` --project ${project}`;
        return warning(
          `${name} has not reached the webhook with: ${failed.join("; ")}. Catch-up deploys what is missing; to have it sent again:`,
          `hotpush connect --redeliver${named} --repository ${quote(`${status.host}+${status.url.href}`)}`,
        );
      } catch (error) {
        if (!(error instanceof HostError)) throw error;
        return skip(`${name} cannot be asked: ${error.message}`);
      }
    },
  },
];

export const scriptChecks: readonly Check[] = [
  {
    id: "deploy-script",
    claim: "deploy.sh can be started, and is committed with its execute bit",
    fix: "puts an example there, sets the execute bit, the first line or the line endings. Then commit and push",
    async probe(context) {
      const { repoPath, scriptEnv: environment, user, readGit, server } = context;
      const found = await checkScript({ repoPath, environment, user });
      if (found?.code.startsWith("repository_")) return skip("the repository comes first");
      const fix = found && scriptCommand(found.code, context);
      if (found !== null) return fix ? problem(firstSentence(found.detail), fix) : problem(found.detail);
      const staged = await readGit("ls-files", "--stage", "--", "deploy.sh");
      if (staged === null || staged.startsWith("100755")) return ok("it can be started");
      if (staged === "" && server !== null)
        return ok("not in git: `hotpush init` writes it to each checkout");
      const add = context.asUser(`git -C ${quote(repoPath)} add --chmod=+x deploy.sh`);
      if (staged === "") return warning("deploy.sh is not in git. Add, commit and push it.", add);
      const text =
        "deploy.sh is in git without its execute bit, so the next pull removes it here too. Then commit and push.";
      return problem(text, add);
    },
  },
];

/** The head of the deployed branch at the remote; null if it does not say. */
async function headOf({ remote, value }: DoctorContext) {
  const answer = await remote();
  const refs = answer.kind === "refs" ? answer.refs : new Map<string, string>();
  const heads = branches.map((branch) => ({ branch, commit: refs.get(`refs/heads/${branch}`) ?? "" }));
  const isDeployed = (branch: string) => [branch, ""].includes(value("BRANCH") ?? "");
  return heads.find(({ branch, commit }) => commit !== "" && isDeployed(branch)) ?? null;
}

function commitStatusOf({ value }: DoctorContext) {
  return readCommitStatus(value("COMMIT_STATUS_URL") || null, value("COMMIT_STATUS_TOKEN_FILE") || null);
}

/** What is wrong, without the advice after it. */
function firstSentence(text: string): string {
  return /^.*?\.(?= [A-Z])/s.exec(text)?.[0] ?? text;
}

/** Why the remote did not answer, by the words of git and ssh: ssh's words come before git's. */
async function remoteFault(failure: RemoteFailure, context: DoctorContext): Promise<Finding> {
  const { remote, url, lines } = failure;
  if (/host identification has changed|host key .*(?:has changed|verification failed|is known)/i.test(lines))
    return await explainHostKey(failure, context);
  const isRefused =
    /Permission denied|Authentication failed|error: 403|access denied|could not read (?:Username|Password)|terminal prompts disabled|unable to read askpass/i;
  if (isRefused.test(lines))
    return url.scheme === "ssh" ? await explainKey(failure, context) : explainToken(failure, context);
  // Git hosts do not say whether a repository does not exist, or this user's key or token may not read it.
  const inRun =
    context.server === null
      ? ""
      : " deploy.sh runs in a container, where localhost is the container itself. Does this machine read it? Then `hotpush init` gives the container what it needs of /etc/hosts, /etc/ssh, /etc/gitconfig and the certificates.";
  const text = `git cannot read ${url.text}: ${reasonIn(lines.split("\n"))}. Is it spelt right, and may this user read it?${inRun}`;
  const set = `git -C ${quote(context.repoPath)} remote set-url ${remote} <the right address>`;
  return problem(text, {
    change: isRemoteName(remote) ? context.asUser(set) : "DEPLOY_REMOTE=<the right address>",
  });
}

/** By its key ssh recognizes the host. For an unknown key it would ask a person, but here there is none. */
async function explainHostKey({ url, lines }: RemoteFailure, context: DoctorContext): Promise<Finding> {
  const { hostname, port, knownHosts } = await readRemoteSsh(url, context);
  const name = quote(port === "22" ? hostname : `[${hostname}]:${port}`);
  const file = quote(knownHosts);
  const scan = `ssh-keyscan -p ${port} ${quote(hostname)} | tee -a ${file} | ssh-keygen -lf -`;
  const learn = `mkdir -p -m 700 ${quote(dirname(knownHosts))} && ${scan}`;
  const compare = "Compare the fingerprint that this prints with the one that the git host publishes:";
  if (!/has changed/i.test(lines))
    return problem(`${knownHosts} has no key of ${name}. ${compare}`, context.asUser(learn));
  const text = `The key of ${name} has changed. If the git host has not announced that, somebody may intercept the connection. ${compare}`;
  return problem(text, context.asUser(`ssh-keygen -R ${name} -f ${file} && ${learn}`));
}

/** The git host needs the public half of a key, in a form. */
async function explainKey({ url }: RemoteFailure, context: DoctorContext): Promise<Finding> {
  if (await hasLostDeployKey(context.repoPath)) {
    const text = `The owner of ${context.repoPath} cannot read the deploy key of this checkout: its link leads to nothing, or to the home of another user. For a new one:`;
    return problem(text, `cd ${quote(context.repoPath)} && hotpush connect`);
  }
  const { keys } = await readRemoteSsh(url, context);
  const text = `${url.host} refuses the keys of this user. Print the public key, and add it to the repository there as a deploy key with read access:`;
  const own = keys.find((one) => existsSync(one)) ?? keys.find((one) => one.endsWith("ed25519")) ?? keys[0];
  const key = quote(own ?? "id_ed25519");
  const make = `mkdir -p -m 700 "$(dirname ${key})" && ssh-keygen -q -t ed25519 -N '' -f ${key}`;
  return problem(text, context.asUser(`test -e ${key} || { ${make}; }; ssh-keygen -y -f ${key}`));
}

function explainToken({ remote, url }: RemoteFailure, { repoPath, asUser }: DoctorContext): Finding {
  const text = `${url.text} asks for a name and a token, or refuses those that this user has. Make a token with read access there; this command asks for it once and stores it:`;
  const git = `git -C ${quote(repoPath)}`;
  return problem(
    text,
    asUser(
      `${git} config credential.helper store && ${git} ls-remote ${quote(withoutCredentials(remote))} HEAD`,
    ),
  );
}

/** How ssh would reach the remote. Quotes in its command are not understood. */
async function readRemoteSsh(
  { host, user: login, port }: GitRemoteUrl,
  { scriptEnv: env, user, readGit }: DoctorContext,
) {
  const command = env.GIT_SSH_COMMAND ?? (await readGit("config", "--get", "core.sshCommand")) ?? "ssh";
  const [program = "ssh", ...options] = command.replaceAll(/["']/g, "").split(/\s+/);
  const withPort = port === null ? [] : ["-p", String(port)];
  const target = login === null ? (host ?? "") : `${login}@${host}`;
  const values = await readSshSettings([program, ...options, ...withPort], target, { env, user });
  // OpenSSH takes the home directory from the user database, not from HOME.
  const home = user?.home ?? readUser(ownUid(), process.getgid?.() ?? 0).home;
  const expand = (path: string) => path.replace(/^~(?=\/)/, home);
  return {
    hostname: values("hostname")[0] ?? host ?? "",
    port: values("port")[0] ?? "22",
    knownHosts: expand(values("userknownhostsfile")[0]?.split(" ")[0] || "~/.ssh/known_hosts"),
    /** Private keys that it would try, whether they exist or not. */
    keys: values("identityfile").map(expand),
  };
}

/** With ALLOWED_SIGNERS, whether the next deployment would pass the check of its signature. */
async function checkSigners(context: DoctorContext): Promise<Finding> {
  const { value, repoPath, scriptEnv: env, user, readGit } = context;
  const signersPath = value("ALLOWED_SIGNERS") || null;
  if (signersPath === null) return skip("ALLOWED_SIGNERS is not set: commits need no signature");
  const signers = readSigners(signersPath, repoPath);
  if ("fault" in signers) return problem(signers.fault);
  const isOpen = ((statOf(signersPath)?.mode ?? 0) & 0o022) !== 0;
  const open = `Other users of this machine can write to ${signersPath}, and could allow their own keys.`;
  if (isOpen) return warning(open, `chmod go-w ${quote(signersPath)}`);
  const commit = (await headOf(context))?.commit;
  // Nothing is fetched.
  if (commit === undefined || (await readGit("cat-file", "-t", commit)) !== "commit")
    return skip("the newest commit of the branch is not in the checkout yet");
  using scratch = makeScratch();
  const scratchPath = join(scratch.path, "signers");
  const { signal } = new AbortController();
  const options = { repoPath, scratchPath, signersPath, signers, env, user, seenAtMs: Date.now(), signal };
  const verdict = await verifyCommit(commit, options);
  if (verdict.kind === "good") return ok(`${commit.slice(0, 7)} is signed by ${verdict.signer}`);
  return problem(signatureProblem(verdict.kind, { commit, signersPath, key: verdict.detail }).detail);
}

const example = fileURLToPath(new URL("../../examples/deploy.sh", import.meta.url));

/** The command that fixes what `checkScript` has found, by its code. */
function scriptCommand(code: string, { repoPath, asUser, server }: DoctorContext): string | undefined {
  if (code === "script_missing" && server !== null) return `cd ${quote(repoPath)} && hotpush init`;
  const file = quote(join(repoPath, "deploy.sh"));
  const install = `install -m 755 ${quote(example)} ${file} && git -C ${quote(repoPath)} add --chmod=+x deploy.sh`;
  const attributes = quote(join(repoPath, ".gitattributes"));
  const commands: Readonly<Record<string, string>> = {
    script_missing: install,
    script_not_executable: `chmod +x ${file}`,
    script_not_readable: `chmod a+rx ${file}`,
    script_without_interpreter: `printf '%s\\n' '#!/usr/bin/env bash' "$(cat ${file})" > ${file}`,
    script_crlf: `sed -i 's/\\r$//' ${file} && echo 'deploy.sh text eol=lf' >> ${attributes}`,
  };
  const command = commands[code];
  return command && asUser(command);
}
