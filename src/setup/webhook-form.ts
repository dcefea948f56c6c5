/** A git remote, read from its URL, without credentials. */
export interface GitRemote {
  /** Without a port: `github.com`. */
  readonly hostname: string;
  /** `owner/name`, or deeper if the host has groups in groups; without `.git`. */
  readonly path: string;
  readonly isSsh: boolean;
  /** The origin of its pages: that of an http or https URL; for ssh, https with the same name is a guess. */
  readonly origin: string;
}

/** The git hosts whose pushes Hotpush verifies, as they are named on the command line. */
export const gitHosts = [
  "github",
  "gitea",
  "forgejo",
  "gogs",
  "gitlab",
  "bitbucket",
  "bitbucket-data-center",
  "pagure",
  "gitness",
] as const;

export type GitHost = (typeof gitHosts)[number];

export function isGitHost(text: string): text is GitHost {
  return (gitHosts as readonly string[]).includes(text);
}

/** The git host of a remote, by its hostname alone, without a request. Null: the name says nothing. */
export function gitHostOf({ hostname }: Pick<GitRemote, "hostname">): GitHost | null {
  const known = gitHosts.find((host) => forms[host].sites?.includes(hostname));
  return known ?? gitHosts.find((host) => forms[host].hint?.test(hostname)) ?? null;
}

/** The name that a payload of `host` gives to the repository at `path` of its remote. */
export function payloadName(path: string, host: GitHost | null): string {
  if (host !== null && forms[host].ownersOnly) return path.split("/").slice(-2).join("/");
  return host === "gitness" ? path.replace(/^git\//, "") : path;
}

/** The webhook's form at a git host, with the value of each field: a row of docs/git-hosts.md. */
export interface WebhookForm {
  /** The host's own name: `GitHub`. */
  readonly host: string;
  /** The URL of the form, or null if the remote is not known. */
  readonly address: string | null;
  /** The way to the form through the host's menus. */
  readonly way: string;
  /** In the order of the form. The value of the secret is the given `secret`. */
  readonly fields: readonly (readonly [label: string, value: string])[];
  /** What the host does when the form is saved, and what its test button does. */
  readonly afterwards: string;
  /** Whether the host makes the secret itself: WEBHOOK_SECRET must be set to the one that it shows. */
  readonly makesSecret: boolean;
}

interface Values {
  /** The URL that the host sends to, such as `https://shop.example.org/webhook`. */
  readonly payloadUrl: string;
  /** The secret itself, or a text that says where it is. */
  readonly secret: string;
}

interface Entry {
  readonly host: string;
  /** Names of its public sites. */
  readonly sites?: readonly string[];
  /** What the name of a site of one's own may show. */
  readonly hint?: RegExp;
  /** Its repositories are `owner/name`: an earlier part of the path belongs to the URL of the host itself. */
  readonly ownersOnly?: true;
  readonly way: string;
  readonly page: (remote: GitRemote) => string;
  readonly fields: (values: Values) => WebhookForm["fields"];
  readonly afterwards: string;
  readonly makesSecret?: boolean;
}

const json = "application/json";
const realPush = "Test delivery sends a real, signed push of the default branch, so it deploys.";
const settings = "repository, Settings, Webhooks, Add webhook";

/** The form of `host`; its address needs a `remote`. */
export function webhookForm(host: GitHost, remote: GitRemote | null, values: Values): WebhookForm {
  const { host: name, way, afterwards, page, fields, makesSecret = false } = forms[host];
  return {
    ...{ host: name, way, afterwards, makesSecret },
    address: remote && page(remote),
    fields: fields(values),
  };
}

function giteaForm(host: string, type: "gitea" | "forgejo", sites: readonly string[]): Entry {
  return {
    ...{ host, sites, hint: new RegExp(type), ownersOnly: true },
    way: `${settings}, ${host}`,
    page: ({ origin, path }) => `${origin}/${path}/settings/hooks/${type}/new`,
    fields: ({ payloadUrl, secret }) => [
      ["Target URL", payloadUrl],
      ["HTTP method", "POST"],
      ["Content type", json],
      ["Secret", secret],
      ["Trigger on", "Push events"],
      ["Branch filter", "{main,master}"],
    ],
    afterwards: realPush,
  };
}

const forms: Readonly<Record<GitHost, Entry>> = {
  github: {
    host: "GitHub",
    sites: ["github.com"],
    hint: /github/,
    way: settings,
    page: ({ origin, path }) => `${origin}/${path}/settings/hooks/new`,
    fields: ({ payloadUrl, secret }) => [
      ["Payload URL", payloadUrl],
      ["Content type", json],
      ["Secret", secret],
      ["Which events", "Just the push event"],
      ["Active", "yes"],
    ],
    afterwards: "GitHub sends a ping at once; the delivery's page shows the answer pong.",
  },
  gitea: giteaForm("Gitea", "gitea", ["gitea.com"]),
  forgejo: giteaForm("Forgejo", "forgejo", ["codeberg.org"]),
  gogs: {
    host: "Gogs",
    hint: /gogs/,
    ownersOnly: true,
    way: `${settings}, Gogs`,
    page: ({ origin, path }) => `${origin}/${path}/settings/hooks/gogs/new`,
    fields: ({ payloadUrl, secret }) => [
      ["Payload URL", payloadUrl],
      ["Content type", json],
      ["Secret", secret],
      ["When should this webhook be triggered?", "Just the push event"],
      ["Active", "yes"],
    ],
    afterwards: realPush,
  },
  gitlab: {
    host: "GitLab",
    sites: ["gitlab.com"],
    hint: /gitlab/,
    way: "project, Settings, Webhooks, Add new webhook",
    page: ({ origin, path }) => `${origin}/${path}/-/hooks`,
    fields: ({ payloadUrl, secret }) => [
      ["URL", payloadUrl],
      ["Signing token", secret],
      ["Secret token", "leave it empty"],
      ["Trigger", "Push events"],
    ],
    afterwards: "It takes GitLab 19.0 or newer. Test, Push events sends a real push, so it deploys.",
    makesSecret: true,
  },
  bitbucket: {
    host: "Bitbucket Cloud",
    sites: ["bitbucket.org"],
    way: "repository, Repository settings, Webhooks, Add webhook",
    page: ({ origin, path }) => `${origin}/${path}/admin/webhooks`,
    fields: ({ payloadUrl, secret }) => [
      ["URL", payloadUrl],
      ["Secret", secret],
      ["Status", "Active"],
      ["Triggers", "Repository push"],
    ],
    afterwards: "There is no test button: push an empty commit.",
  },
  "bitbucket-data-center": {
    host: "Bitbucket Data Center",
    hint: /bitbucket|stash/,
    ownersOnly: true,
    way: "repository, Repository settings, Webhooks, Create webhook",
    page: dataCenterPage,
    fields: ({ payloadUrl, secret }) => [
      ["URL", payloadUrl],
      ["Secret", secret],
      ["Events", "Repository: Push"],
    ],
    afterwards: "Test connection is answered with pong once the webhook is saved with its secret.",
  },
  pagure: {
    host: "Pagure",
    sites: ["pagure.io"],
    hint: /pagure/,
    way: "project, Settings, Hooks and Web-hooks",
    page: ({ origin, path }) => `${origin}/${path}/settings`,
    fields: ({ payloadUrl, secret }) => [
      ["Web-hooks", payloadUrl],
      ["Private web-hook key", secret],
    ],
    afterwards:
      "Pagure sends every event to every URL; all but pushes are ignored. Private projects send nothing.",
    makesSecret: true,
  },
  gitness: {
    host: "Gitness",
    hint: /gitness|harness/,
    way: "repository, Webhooks, New webhook",
    page: ({ origin, path }) => `${origin}/${path}/webhooks`,
    fields: ({ payloadUrl, secret }) => [
      ["Payload URL", payloadUrl],
      ["Secret", secret],
      ["Events", "Let me select individual events: Branch created, Branch updated"],
    ],
    afterwards: "There is no test button: push an empty commit.",
  },
};

/** Clone URLs end in `scm/KEY/slug` by https and in `key/slug` by ssh. */
function dataCenterPage({ origin, path }: GitRemote): string {
  const [slug = "", key = ""] = path.split("/").toReversed();
  return `${origin}/plugins/servlet/webhooks/projects/${key.toUpperCase()}/repos/${slug}`;
}
