/**
 * What the APIs of git hosts take for webhooks and deploy keys, field by field, as their own descriptions have it: of what they take,
 * what Hotpush sends. Other members are refused here, also if the host would ignore them.
 *
 * - GitHub: api.github.com.json of @octokit/openapi 23.0.2 (MIT), the request bodies as they are there
 * - Gitea: CreateHookOption, EditHookOption and CreateKeyOption of its Swagger file 1.23; config needs `url` and `content_type`
 * - Forgejo: the same of its own file 15.0, which has the type `forgejo` too
 * - GitLab: docs.gitlab.com/api/project_webhooks and /api/deploy_keys; `signing_token` is `whsec_` and 32 bytes in base64;
 *   events as resend_hook.rb and entities/web_hook_log.rb have them
 * - Bitbucket Cloud: developer.atlassian.com/cloud/bitbucket/rest, "Webhooks" and "Deployments"
 */
export type HostName = "github" | "gitea" | "forgejo" | "gitlab" | "bitbucket-cloud";

interface Operation {
  /** Parameters of the query. */
  readonly query?: readonly string[];
  /** More are refused. */
  readonly mostPerPage?: number;
  /** A JSON schema; without one there is no body. */
  readonly body?: object;
}

const text = { type: "string" };
const flag = { type: "boolean" };
const uri = { type: "string", pattern: "^https?://" };
const texts = { type: "array", items: text };
const closed = (properties: object, required: readonly string[] = []) => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});

/** What every host has: two collections, in which one is made, changed and removed. */
interface Collections {
  /** What comes before the collections, for the repository `octo/shop`. */
  readonly prefix: string;
  readonly auth: Readonly<Record<string, string>>;
  readonly pages: readonly string[];
  readonly hook: object;
  /** null: it keeps the old secret, so nobody should ask for it. */
  readonly change: "PATCH" | "PUT" | null;
  readonly keys: string;
  readonly key: object;
  readonly more?: Readonly<Record<string, Operation>>;
}

function describe(api: Collections) {
  const { prefix, auth, pages, hook, change, keys, key, more } = api;
  const operations: Readonly<Record<string, Operation>> = {
    "GET hooks": { query: pages },
    "POST hooks": { body: hook },
    ...(change && { [`${change} hooks/{id}`]: { body: hook } }),
    "DELETE hooks/{id}": {},
    [`GET ${keys}`]: { query: pages },
    [`POST ${keys}`]: { body: key },
    [`DELETE ${keys}/{id}`]: {},
    ...more,
  };
  return { prefix, auth, keys, operations };
}

const gitHubHook = {
  config: closed({ url: uri, content_type: text, secret: text, insecure_ssl: text }),
  events: texts,
  active: flag,
};

function giteaLike(type: string) {
  const config = {
    type: "object",
    properties: { url: uri },
    additionalProperties: text,
    required: ["url", "content_type"],
  };
  const hook = { type: { const: type }, active: flag, branch_filter: text, events: texts, config };
  return describe({
    prefix: "/api/v1/repos/octo/shop",
    auth: { authorization: "token {token}" },
    pages: ["page", "limit"],
    hook: closed(hook, ["type", "config"]),
    change: null,
    keys: "keys",
    key: closed({ title: text, key: text, read_only: flag }, ["title", "key"]),
  });
}

const bitbucketEvents = { enum: ["repo:push", "repo:commit_status_created", "repo:commit_status_updated"] };

export const hostDescriptions = {
  github: describe({
    prefix: "/api/v3/repos/octo/shop",
    auth: {
      authorization: "Bearer {token}",
      accept: "application/vnd.github+json",
      "x-github-api-version": "2022-11-28",
    },
    pages: ["per_page", "page"],
    hook: closed(gitHubHook),
    change: "PATCH",
    keys: "keys",
    key: closed({ title: text, key: text, read_only: flag }, ["key"]),
    more: {
      "POST hooks/{id}/pings": {},
      "GET hooks/{id}/deliveries": { query: ["per_page"] },
      "POST hooks/{id}/deliveries/{id}/attempts": {},
    },
  }),
  gitea: giteaLike("gitea"),
  forgejo: giteaLike("forgejo"),
  gitlab: describe({
    prefix: "/api/v4/projects/octo%2Fshop",
    auth: { "private-token": "{token}" },
    pages: ["per_page", "page"],
    hook: closed(
      {
        url: uri,
        push_events: flag,
        pipeline_events: flag,
        job_events: flag,
        branch_filter_strategy: { enum: ["wildcard", "regex", "all_branches"] },
        enable_ssl_verification: flag,
        signing_token: { type: "string", pattern: "^whsec_[A-Za-z0-9+/]{43}=$" },
      },
      ["url"],
    ),
    change: null,
    keys: "deploy_keys",
    key: closed({ title: text, key: text, can_push: flag }, ["title", "key"]),
    more: {
      "GET hooks/{id}/events": { query: ["per_page"], mostPerPage: 20 },
      "POST hooks/{id}/events/{id}/resend": {},
    },
  }),
  "bitbucket-cloud": describe({
    prefix: "/2.0/repositories/octo/shop",
    auth: { authorization: "Bearer {token}" },
    pages: ["pagelen", "page"],
    hook: closed({
      url: uri,
      description: text,
      active: flag,
      secret: text,
      events: { type: "array", items: bitbucketEvents, minItems: 1 },
    }),
    change: "PUT",
    keys: "deploy-keys",
    key: closed({ key: text, label: text }, ["key"]),
  }),
} satisfies Readonly<Record<HostName, object>>;
