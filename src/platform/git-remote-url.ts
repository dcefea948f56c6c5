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

/** Reads `git@host:path`, `ssh://…`, `https://…`, `git://…` and paths, as git does. */
export function parseGitRemoteUrl(given: string): GitRemoteUrl {
  const text = withoutCredentials(given.trim());
  const [, scheme = "ssh", authority, rest = ""] =
    /^(?:git\+)?(ssh|https?|git):\/\/([^/]*)\/(.*)$/i.exec(given.trim()) ?? [];
  const short = /^([^/:\s[]*(?:\[[^\]/\s]+\])?):(?!\/\/)\/?(.*)$/;
  const [, place = authority, path = rest] = authority === undefined ? (short.exec(given.trim()) ?? []) : [];
  const userEnd = place?.lastIndexOf("@") ?? -1;
  const [, host, port] = /^(\[[^\]]+\]|[^:[\]]+)(?::(\d+))?$/.exec(place?.slice(userEnd + 1) ?? "") ?? [];
  if (host === undefined) return { text, scheme: "file", user: null, host: null, port: null, path: text };
  return {
    text,
    scheme: scheme.toLowerCase() as GitRemoteUrl["scheme"],
    user: userEnd === -1 ? null : (place?.slice(0, userEnd).split(":")[0] ?? null),
    host: host.replace(/^\[|\]$/g, ""),
    port: port ? Number(port) : null,
    path,
  };
}

/** Replaces the credentials of every URL in `text`: a token can be the user's name or the password. */
export function withoutCredentials(text: string): string {
  return text.replaceAll(/(https?:\/\/)[^/\s]*@/gi, "$1…@");
}
