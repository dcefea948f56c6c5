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

interface HostDescription {
  /** What comes before the collections, for the repository `octo/shop`. */
  readonly prefix: string;
  readonly auth: Readonly<Record<string, string>>;
  readonly keys: string;
  readonly operations: Readonly<Record<string, Operation>>;
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

const gitHubConfig = closed({
  url: uri,
  content_type: text,
  secret: text,
  insecure_ssl: { oneOf: [text, { type: "number" }] },
});

const github: HostDescription = {
  prefix: "/api/v3/repos/octo/shop",
  auth: {
    authorization: "Bearer {token}",
    accept: "application/vnd.github+json",
    "x-github-api-version": "2022-11-28",
  },
  keys: "keys",
  operations: {
    "GET hooks": { query: ["per_page", "page"] },
    "POST hooks": {
      body: closed({ name: { const: "web" }, config: gitHubConfig, events: texts, active: flag }),
    },
    "PATCH hooks/{id}": { body: closed({ config: gitHubConfig, events: texts, active: flag }) },
    "DELETE hooks/{id}": {},
    "POST hooks/{id}/pings": {},
    "GET hooks/{id}/deliveries": { query: ["per_page", "cursor", "status"] },
    "POST hooks/{id}/deliveries/{id}/attempts": {},
    "GET keys": { query: ["per_page", "page"] },
    "POST keys": { body: closed({ title: text, key: text, read_only: flag }, ["key"]) },
    "DELETE keys/{id}": {},
  },
};

const giteaConfig = { type: "object", properties: { url: uri }, additionalProperties: text };
const giteaEdit = { active: flag, branch_filter: text, events: texts, config: giteaConfig };

function giteaLike(type: string): HostDescription {
  return {
    prefix: "/api/v1/repos/octo/shop",
    auth: { authorization: "token {token}" },
    keys: "keys",
    operations: {
      "GET hooks": { query: ["page", "limit"] },
      "POST hooks": {
        body: closed(
          {
            ...giteaEdit,
            type: { const: type },
            config: { ...giteaConfig, required: ["url", "content_type"] },
          },
          ["type", "config"],
        ),
      },
      "PATCH hooks/{id}": { body: closed(giteaEdit) },
      "DELETE hooks/{id}": {},
      "GET keys": { query: ["key_id", "fingerprint", "page", "limit"] },
      "POST keys": { body: closed({ title: text, key: text, read_only: flag }, ["title", "key"]) },
      "DELETE keys/{id}": {},
    },
  };
}

const gitLabHook = closed(
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
);

const bitbucketHook = closed({
  url: uri,
  description: text,
  active: flag,
  secret: text,
  events: {
    type: "array",
    items: { enum: ["repo:push", "repo:commit_status_created", "repo:commit_status_updated"] },
    minItems: 1,
  },
});

export const hostDescriptions: Readonly<Record<HostName, HostDescription>> = {
  github,
  gitea: giteaLike("gitea"),
  forgejo: giteaLike("forgejo"),
  gitlab: {
    prefix: "/api/v4/projects/octo%2Fshop",
    auth: { "private-token": "{token}" },
    keys: "deploy_keys",
    operations: {
      "GET hooks": { query: ["per_page", "page"] },
      "POST hooks": { body: gitLabHook },
      "PUT hooks/{id}": { body: gitLabHook },
      "DELETE hooks/{id}": {},
      "GET hooks/{id}/events": { query: ["status", "per_page", "page"], mostPerPage: 20 },
      "POST hooks/{id}/events/{id}/resend": {},
      "GET deploy_keys": { query: ["per_page", "page"] },
      "POST deploy_keys": {
        body: closed({ title: text, key: text, can_push: flag, expires_at: text }, ["title", "key"]),
      },
      "DELETE deploy_keys/{id}": {},
    },
  },
  "bitbucket-cloud": {
    prefix: "/2.0/repositories/octo/shop",
    auth: { authorization: "Bearer {token}" },
    keys: "deploy-keys",
    operations: {
      "GET hooks": { query: ["pagelen", "page"] },
      "POST hooks": { body: bitbucketHook },
      "PUT hooks/{id}": { body: bitbucketHook },
      "DELETE hooks/{id}": {},
      "GET deploy-keys": { query: ["pagelen", "page"] },
      "POST deploy-keys": { body: closed({ key: text, label: text, comment: text }, ["key"]) },
      "DELETE deploy-keys/{id}": {},
    },
  },
};
