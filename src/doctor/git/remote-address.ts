/** The address of a remote, in parts. `host` is null for a directory of this machine. */
export interface RemoteAddress {
  readonly text: string;
  readonly scheme: "ssh" | "https" | "http" | "git" | "file";
  readonly host: string | null;
  readonly user: string | null;
  readonly port: number | null;
  /** Without the slash at its begin: `octo/app.git`. */
  readonly path: string;
}

/** Reads `git@host:path`, `ssh://…`, `https://…`, `git://…` and paths, as git does. */
export function parseAddress(text: string): RemoteAddress {
  const url = /^(ssh|https?|git):\/\/(?:([^@/]+)@)?(\[[^\]]+\]|[^:/]+)(?::(\d+))?\/(.*)$/.exec(text);
  if (url) {
    const [, scheme, user = null, host = "", port, path = ""] = url;
    return {
      text: withoutPassword(text),
      scheme: scheme as RemoteAddress["scheme"],
      user: user?.split(":")[0] ?? null,
      host: host.replace(/^\[|\]$/g, ""),
      port: port === undefined ? null : Number(port),
      path,
    };
  }
  const short = /^(?:([^@/:]+)@)?([^:/]+):(?!\/\/)(.*)$/.exec(text);
  if (!short) return { text, scheme: "file", host: null, user: null, port: null, path: text };
  const [, user = null, host = "", path = ""] = short;
  return { text, scheme: "ssh", user, host, port: null, path: path.replace(/^\//, "") };
}

/** An address can hold a token, as the name or as the password; it is never shown. */
export function withoutPassword(text: string): string {
  return text.replaceAll(/(https?:\/\/)[^@/\s]*@/g, "$1…@");
}
