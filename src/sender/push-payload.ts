import type { GitHost } from "../setup/git-host.ts";
import type { RepositoryHead } from "./repository-head.ts";

/** The text of a push's body as `host` writes it, down to the spacing; its fields are those that receivers read. */
export function pushBody(host: GitHost, head: RepositoryHead, now: Date): string {
  const payload = payloads[host](head, now);
  switch (host) {
    case "gitea":
    case "forgejo":
    case "gogs":
      return JSON.stringify(payload, null, 2);
    case "gitness":
      // Go's encoder ends with a newline, which is signed.
      return `${JSON.stringify(payload)}\n`;
    default:
      return JSON.stringify(payload);
  }
}

type MakePayload = (head: RepositoryHead, now: Date) => object;

const payloads: Readonly<Record<GitHost, MakePayload>> = {
  github: (head, now) => ({
    ref: head.ref,
    before: head.before,
    after: head.commit,
    repository: { ...repositoryOf(head), pushed_at: seconds(now) },
    pusher: head.author,
    created: isNew(head),
    deleted: false,
    forced: false,
    base_ref: null,
    commits: [commitOf(head, now)],
    head_commit: commitOf(head, now),
  }),
  gitea: giteaPush,
  forgejo: giteaPush,
  gogs: (head, now) => {
    const { head_commit, total_commits, ...push } = giteaPush(head, now);
    return push;
  },
  gitlab: (head, now) => ({
    object_kind: "push",
    event_name: "push",
    before: head.before,
    after: head.commit,
    ref: head.ref,
    checkout_sha: head.commit,
    message: null,
    user_name: head.author.name,
    user_email: "",
    project: {
      name: nameOf(head),
      path_with_namespace: head.repository,
      default_branch: branchOf(head),
    },
    commits: [commitOf(head, now)],
    total_commits_count: 1,
    push_options: {},
  }),
  bitbucket: (head, now) => ({
    push: {
      changes: [
        {
          old: isNew(head) ? null : bitbucketSide(head, head.before, now),
          new: bitbucketSide(head, head.commit, now),
          created: isNew(head),
          forced: false,
          closed: false,
        },
      ],
    },
    repository: { type: "repository", full_name: head.repository, name: nameOf(head) },
    actor: { display_name: head.author.name },
  }),
  "bitbucket-data-center": (head, now) => ({
    eventKey: "repo:refs_changed",
    date: now.toISOString(),
    actor: { name: head.author.name, emailAddress: head.author.email },
    repository: { slug: nameOf(head), name: nameOf(head), project: { key: ownerOf(head) } },
    changes: [
      {
        ref: { id: head.ref, displayId: branchOf(head), type: "BRANCH" },
        refId: head.ref,
        fromHash: head.before,
        toHash: head.commit,
        type: isNew(head) ? "ADD" : "UPDATE",
      },
    ],
  }),
  // Pagure sorts the keys.
  pagure: (head, now) => ({
    i: 1,
    msg: {
      agent: head.author.name,
      branch: branchOf(head),
      end_commit: head.commit,
      forced: false,
      old_commit: isNew(head) ? `^${head.before}` : head.before,
      project_fullname: head.repository,
      pull_request_id: null,
      repo: { fullname: head.repository, name: nameOf(head) },
      start_commit: head.commit,
      total_commits: 1,
    },
    msg_id: `${now.getUTCFullYear()}-${crypto.randomUUID()}`,
    timestamp: seconds(now),
    topic: "git.receive",
  }),
  gitness: (head, now) => ({
    trigger: isNew(head) ? "branch_created" : "branch_updated",
    repo: { path: head.repository, identifier: nameOf(head), default_branch: branchOf(head) },
    principal: { display_name: head.author.name, email: head.author.email, updated: now.getTime() },
    ref: { name: head.ref, repo: { path: head.repository } },
    sha: head.commit,
    head_commit: { sha: head.commit, message: head.subject },
    old_sha: head.before,
    forced: false,
  }),
};

function giteaPush(head: RepositoryHead, now: Date) {
  return {
    ref: head.ref,
    before: head.before,
    after: head.commit,
    commits: [commitOf(head, now)],
    total_commits: 1,
    head_commit: commitOf(head, now),
    repository: { ...repositoryOf(head), updated_at: now.toISOString() },
    pusher: { login: head.author.name, email: head.author.email },
  };
}

function repositoryOf(head: RepositoryHead) {
  return { name: nameOf(head), full_name: head.repository, default_branch: branchOf(head) };
}

function commitOf({ commit, subject, author }: RepositoryHead, now: Date) {
  return { id: commit, message: subject, timestamp: now.toISOString(), author };
}

function bitbucketSide(head: RepositoryHead, hash: string, now: Date) {
  return { type: "branch", name: branchOf(head), target: { type: "commit", hash, date: now.toISOString() } };
}

function branchOf({ ref }: RepositoryHead): string {
  return ref.replace("refs/heads/", "");
}

function nameOf({ repository }: RepositoryHead): string {
  return repository.split("/").at(-1) ?? repository;
}

function ownerOf({ repository }: RepositoryHead): string {
  return repository.split("/").at(-2) ?? "local";
}

function isNew({ before }: RepositoryHead): boolean {
  return /^0+$/.test(before);
}

function seconds(now: Date): number {
  return Math.floor(now.getTime() / 1_000);
}
