/** The URL of a git remote, in parts. */
export interface GitRemoteUrl {
  /** The URL without its credentials. */
  readonly text: string;
  /** `file` is a path on this machine, or a URL with another scheme. */
  readonly scheme: "ssh" | "https" | "http" | "git" | "file";
  readonly user: string | null;
  /** As it is written, an IPv6 address without its brackets; null for `file`. */
  readonly host: string | null;
  readonly port: number | null;
  /** Without the slash at its start: `octo/app.git`. */
  readonly path: string;
}

/** The names under which these git hosts accept ssh on port 443, by their usual names. */
export const sshOverHttps: ReadonlyMap<string, string> = new Map([
  ["github.com", "ssh.github.com"],
  ["gitlab.com", "altssh.gitlab.com"],
  ["bitbucket.org", "altssh.bitbucket.org"],
]);

/** Reads `git@host:path`, `ssh://…`, `https://…`, `git://…` and paths, as git does. */
export function parseGitRemoteUrl(given: string): GitRemoteUrl {
  const text = withoutCredentials(given.trim());
  const url = /^(?:git\+)?(ssh|https?|git):\/\/(?:([^/]*)@)?(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/(.*)$/i;
  const short = /^(?:([^@/:\s]+)@)?(\[[^\]]+\]|[^:/\s[\]]+)():(?!\/\/)\/?(.*)$/;
  const [, scheme, user, host, port, path = ""] =
    url.exec(given.trim()) ?? short.exec(given.trim())?.toSpliced(1, 0, "ssh") ?? [];
  if (host === undefined) return { text, scheme: "file", user: null, host: null, port: null, path: text };
  return {
    text,
    scheme: scheme?.toLowerCase() as GitRemoteUrl["scheme"],
    user: user?.split(":")[0] ?? null,
    host: host.replace(/^\[|\]$/g, ""),
    port: port ? Number(port) : null,
    path,
  };
}

/** Replaces the credentials of every URL in `text`: a token can be the user's name or the password. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/(https?:\/\/)[^/\s]*@/gi, "$1…@");
}
