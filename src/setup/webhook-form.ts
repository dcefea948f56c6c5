import { type GitHost, gitHosts } from "#config/git-hosts";

/** A git remote, read from its URL, without credentials. */
export interface GitRemote {
  /** Without a port: `github.com`. */
  readonly hostname: string;
  /** `owner/name`, or deeper if the host has groups in groups; without `.git`. */
  readonly path: string;
  /** The origin of its pages: that of an http or https URL; for ssh, https with the same name is a guess. */
  readonly origin: string;
}

/** The webhook's form at a git host: a row of docs/git-hosts.md. */
interface FormRow {
  /** The way to the form through the host's menus. */
  readonly way: string;
  /** The path of the form, with the repository's `path`, or its `KEY` and `slug`. */
  readonly page: string;
  /** In the order of the form. */
  readonly fields: Readonly<Record<string, string>>;
  /** What the host does when the form is saved, and what its test button does. */
  readonly afterwards: string;
  /** The names of the events that say how the checks of a commit went, for DEPLOY_AFTER. */
  readonly checks?: string;
  /** Whether the host makes the secret itself: WEBHOOK_SECRET must be set to the one that it shows. */
  readonly makesSecret?: true;
}

const url = "{url}";
const secret = "{secret}";
const json = "application/json";
const settings = "repository, Settings, Webhooks, Add webhook";
const gitHubFields = { "Payload URL": url, "Content type": json, Secret: secret };
const giteaFields = {
  "Target URL": url,
  "HTTP method": "POST",
  "Content type": json,
  Secret: secret,
  "Trigger on": "Push events",
  "Branch filter": "{main,master}",
};
const realPush =
  "Test delivery sends a real, signed push of the default branch, which is treated like any other.";
/** Gitea, and what came from it. */
const giteaLike = (kind: GitHost, fields: FormRow["fields"]) => ({
  way: `${settings}, ${gitHosts[kind].title}`,
  page: `{path}/settings/hooks/${kind}/new`,
  fields,
  afterwards: realPush,
});
const noTest = "There is no test button: push an empty commit.";

const forms: Readonly<Record<GitHost, FormRow>> = {
  github: {
    way: settings,
    page: "{path}/settings/hooks/new",
    fields: { ...gitHubFields, "Which events": "Just the push event", Active: "yes" },
    checks: "Check runs, Check suites, Statuses",
    afterwards: "GitHub sends a ping at once; the delivery's page shows the answer pong.",
  },
  gitea: { ...giteaLike("gitea", giteaFields), checks: "Status" },
  forgejo: { ...giteaLike("forgejo", giteaFields), checks: "Action Run events: Success" },
  gogs: giteaLike("gogs", {
    ...gitHubFields,
    "When should this webhook be triggered?": "Just the push event",
    Active: "yes",
  }),
  gitlab: {
    way: "project, Settings, Webhooks, Add new webhook",
    page: "{path}/-/hooks",
    fields: { URL: url, "Signing token": secret, "Secret token": "leave it empty", Trigger: "Push events" },
    checks: "Pipeline events, Job events",
    afterwards:
      "It takes GitLab 19.0 or newer. Test, Push events sends a real push, which is treated like any other.",
    makesSecret: true,
  },
  "bitbucket-cloud": {
    way: "repository, Repository settings, Webhooks, Add webhook",
    page: "{path}/admin/webhooks",
    fields: { URL: url, Secret: secret, Status: "Active", Triggers: "Repository push" },
    checks: "Build status created, Build status updated",
    afterwards: noTest,
  },
  "bitbucket-data-center": {
    way: "repository, Repository settings, Webhooks, Create webhook",
    page: "plugins/servlet/webhooks/projects/{KEY}/repos/{slug}",
    fields: { URL: url, Secret: secret, Events: "Repository: Push" },
    afterwards: "Test connection is answered with pong once the webhook is saved with its secret.",
  },
  pagure: {
    way: "project, Settings, Hooks and Web-hooks",
    page: "{path}/settings",
    fields: { "Web-hooks": url, "Private web-hook key": secret },
    afterwards:
      "Pagure sends every event to every URL; all but pushes are ignored. Private projects send nothing.",
    makesSecret: true,
  },
  gitness: {
    way: "repository, Webhooks, New webhook",
    page: "{path}/webhooks",
    fields: {
      "Payload URL": url,
      Secret: secret,
      Events: "Let me select individual events: Branch created, Branch updated",
    },
    afterwards: noTest,
  },
};

/** The name that a payload of `host` gives to the repository at `path` of its remote. */
export function payloadName(path: string, host: GitHost | null): string {
  if (host !== null && gitHosts[host].ownersOnly) return path.split("/").slice(-2).join("/");
  return host === "gitness" ? path.replace(/^git\//, "") : path;
}

/**
 * The form of `host`, with the value of each field.
 *
 * @param remote null: it is not known, and so neither is the form's address
 * @param values the URL that the host sends to; and the secret, or a text that says where it is
 */
export function webhookForm(
  host: GitHost,
  remote: GitRemote | null,
  values: { readonly payloadUrl: string; readonly secret: string },
) {
  const { page, fields, ...row } = forms[host];
  const filledIn = (value: string) =>
    value === url ? values.payloadUrl : value === secret ? values.secret : value;
  return {
    ...row,
    /** The host's own name. */
    host: gitHosts[host].title,
    address: remote && addressOf(page, host, remote),
    fields: Object.entries(fields).map(([label, value]) => [label, filledIn(value)] as const),
  };
}

/** Clone URLs of Bitbucket Data Center end in `scm/KEY/slug` by https and in `key/slug` by ssh. */
function addressOf(page: string, host: GitHost, remote: GitRemote): string {
  const { origin } = remote;
  const path = host === "gitness" ? payloadName(remote.path, host) : remote.path;
  const [slug = "", key = ""] = path.split("/").toReversed();
  const parts: Readonly<Record<string, string>> = { path, KEY: key.toUpperCase(), slug };
  return `${origin}/${page.replaceAll(/\{(\w+)\}/g, (_, name: string) => parts[name] ?? "")}`;
}
