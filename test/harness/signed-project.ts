import { copyFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { deployScript } from "../examples/project.ts";
import { deliver, githubPush, type WebhookReply } from "./delivery.ts";
import { startAnswering } from "./hotpush.ts";
import { git } from "./project.ts";
import { untilDeployment } from "./records.ts";
import type { RunningService } from "./service.ts";
import { makeSshKey, type SigningKey } from "./signing.ts";
import { type Scope, temporaryDirectory } from "./temporary.ts";

/** A project whose commits must be signed: a remote, a clone to push from, and the checkout that is deployed. */
export interface SignedProject {
  readonly remotePath: string;
  readonly workPath: string;
  readonly repoPath: string;
  readonly signersPath: string;
  /** The key that is allowed at first. */
  readonly key: SigningKey;
  /** Commits `files`, signed with `key` unless it is null, and pushes. @returns the commit */
  readonly push: (key: SigningKey | null, files?: Readonly<Record<string, string>>) => string;
  /** Replaces the file of allowed keys. */
  readonly allow: (text: string) => void;
  readonly head: () => string;
}

/** Makes one with the example's deploy.sh and a signed first commit. */
export function makeSignedProject(scope: Scope): SignedProject {
  const root = temporaryDirectory(scope);
  const at = (name: string) => join(root, name);
  const [remotePath, workPath, repoPath, signersPath] = [
    at("remote.git"),
    at("work"),
    at("app"),
    at("signers"),
  ];
  git(root, "init", "--quiet", "--bare", "--initial-branch=main", remotePath);
  git(root, "clone", "--quiet", remotePath, workPath);
  git(workPath, "switch", "--quiet", "--orphan", "main");
  const push: SignedProject["push"] = (key, files = {}) => {
    for (const [name, text] of Object.entries(files)) writeFileSync(join(workPath, name), text);
    git(workPath, "add", "--all");
    git(workPath, ...(key?.gitOptions ?? []), "commit", "--quiet", "--allow-empty", "--message", "A change");
    git(workPath, "push", "--quiet", "--force", "origin", "main");
    return git(workPath, "rev-parse", "HEAD");
  };
  const key = makeSshKey(scope);
  copyFileSync(deployScript, join(workPath, "deploy.sh"));
  push(key);
  git(root, "clone", "--quiet", remotePath, repoPath);
  const allow = (text: string) => writeFileSync(signersPath, text);
  allow(`ada@example.com ${key.publicKey}\n`);
  const head = () => git(repoPath, "rev-parse", "HEAD");
  return { remotePath, workPath, repoPath, signersPath, key, push, allow, head };
}

/** Starts a service that deploys only signed commits. */
export function startSigned(scope: Scope, { repoPath, signersPath }: SignedProject): Promise<RunningService> {
  return startAnswering(scope, {
    repoPath,
    env: { ALLOWED_SIGNERS: signersPath, DEPLOY_RETRY_PAUSES: "0", DEPLOY_ENV: "DEPLOY_RETRY_PAUSES" },
  });
}

/** Delivers the push of `after` and waits for the end of its deployment. */
export async function deployPush(service: RunningService, after: string) {
  const reply: WebhookReply = await deliver(service.url, githubPush({ after }));
  const id = reply.json.deployment?.id ?? 0;
  return await untilDeployment(service.statePath, id, ({ state }) => !["queued", "running"].includes(state));
}
