/** A git host whose pushes Hotpush verifies. */
interface GitHostRow {
  /** Its own name. */
  readonly title: string;
  /** The name of its public site. */
  readonly site?: string;
  /** The name under which that site accepts ssh on port 443. */
  readonly sshOverHttps?: string;
  /** What the name of a site of one's own may show. */
  readonly hint?: RegExp;
  /** Its repositories are `owner/name`: an earlier part of the path belongs to the URL of the host itself. */
  readonly ownersOnly?: true;
}

/**
 * The git hosts, as they are named in settings, on the command line and in logs. What else there is to say of a host is a row in the
 * table of the part that alone needs it: how it signs and what it sends in front/webhook/git-hosts.ts, the form of its webhook in
 * setup/webhook-form.ts, its API for webhooks and keys in setup/host-apis.ts, and for results in notifications/commit-status.ts. So
 * the process on the internet holds no API, and the one with the tokens no verification.
 */
const rows = {
  github: { title: "GitHub", site: "github.com", sshOverHttps: "ssh.github.com", hint: /github/ },
  gitea: { title: "Gitea", site: "gitea.com", hint: /gitea/, ownersOnly: true },
  forgejo: { title: "Forgejo", site: "codeberg.org", hint: /forgejo/, ownersOnly: true },
  gogs: { title: "Gogs", hint: /gogs/, ownersOnly: true },
  gitlab: { title: "GitLab", site: "gitlab.com", sshOverHttps: "altssh.gitlab.com", hint: /gitlab/ },
  "bitbucket-cloud": {
    title: "Bitbucket Cloud",
    site: "bitbucket.org",
    sshOverHttps: "altssh.bitbucket.org",
  },
  "bitbucket-data-center": { title: "Bitbucket Data Center", hint: /bitbucket|stash/, ownersOnly: true },
  pagure: { title: "Pagure", site: "pagure.io", hint: /pagure/ },
  gitness: { title: "Gitness", hint: /gitness|harness/ },
} as const satisfies Readonly<Record<string, GitHostRow>>;

export type GitHost = keyof typeof rows;

export const gitHosts: Readonly<Record<GitHost, GitHostRow>> = rows;

export const gitHostNames = Object.keys(rows) as readonly GitHost[];

export function isGitHost(text: string): text is GitHost {
  return Object.hasOwn(rows, text);
}

/** The git host with a site of this name, by its name alone, without a request. Null: the name says nothing. */
export function gitHostOf({ hostname }: { readonly hostname: string }): GitHost | null {
  const known = gitHostNames.find((host) => gitHosts[host].site === hostname);
  return known ?? gitHostNames.find((host) => gitHosts[host].hint?.test(hostname)) ?? null;
}

/** The public site that `name` leads to: that for ssh on port 443, or an alias of ssh such as `github.com-shop`; else `name`. */
export function siteBehind(name: string): string {
  const isBehind = ({ site = name, sshOverHttps }: GitHostRow) =>
    name === sshOverHttps || (name.startsWith(site) && /^[-_.]/.test(name.slice(site.length)));
  return Object.values(gitHosts).find(isBehind)?.site ?? name;
}

export const statusHosts = ["github", "gitea", "forgejo", "gitlab", "bitbucket-cloud"] as const;

/** A repository at a git host. */
export interface HostedRepository {
  readonly host: (typeof statusHosts)[number];
  /** Its address for people. */
  readonly url: URL;
}

/**
 * Reads the address of a repository at a git host: `https://github.com/octo/app`, or with the kind of the host before it
 * `gitea+https://git.example.com/octo/app`.
 *
 * @returns null if it is something else, or the kind of the host is not known
 */
export function parseHostedRepository(text: string): HostedRepository | null {
  const [, word, address = ""] = /^(?:([a-z-]+)\+)?(https?:\/\/.+)$/.exec(text) ?? [];
  if (!URL.canParse(address)) return null;
  const url = new URL(address);
  url.pathname = url.pathname.replace(/\/+$/, "").replace(/\.git$/, "");
  const host = statusHosts.find((one) =>
    word === undefined ? gitHosts[one].site === url.host : one === word,
  );
  const isPlain = url.username + url.password + url.search + url.hash === "";
  const isRepository = /^(?:\/[\w.~-]+){2,}$/.test(url.pathname);
  return host !== undefined && isPlain && isRepository ? { host, url } : null;
}
