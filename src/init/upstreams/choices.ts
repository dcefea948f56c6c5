import { isHostName } from "./host-name.ts";

/** A place that a person chose for a service, or for one of its ports. */
export interface GivenPlace {
  readonly service: string;
  /** The port in the container; null: the one that speaks HTTP. */
  readonly port: number | null;
  /** `none`: it stays published as it is. */
  readonly place: { readonly kind: "name"; readonly name: string } | PortPlace | { readonly kind: "none" };
}

/** A port of Caddy's own. */
export interface PortPlace {
  readonly kind: "port";
  readonly port: number;
}

/** What a person decided: on the command line, as an answer, or at an earlier run. */
export interface Choices {
  /** The last one for a port counts. */
  readonly places: readonly GivenPlace[];
  /** By service: whether two containers of it may write to its volumes at once. */
  readonly writers: Readonly<Record<string, boolean>>;
}

export const noChoices: Choices = { places: [], writers: {} };

/** Reads `<service>[:port]=<host name | :port | none>`, the value of `--at`. Null: it has another form. */
export function parsePlace(text: string): GivenPlace | null {
  const [, service, port, at = ""] = /^([\w.-]+?)(?::(\d{1,5}))?=(\S+)$/.exec(text.trim()) ?? [];
  const place = readPlace(at);
  if (service === undefined || place === null) return null;
  return { service, port: port === undefined ? null : Number(port), place };
}

/** Reads a host name, `:8081`, or `none`. Null: none of them. */
export function readPlace(text: string): GivenPlace["place"] | null {
  const lower = text
    .trim()
    .toLowerCase()
    .replace(/^https?:\/\/([^/]*)\/?$/, "$1");
  if (lower === "none") return { kind: "none" };
  const [, digits] = /^:(\d{1,5})$/.exec(lower) ?? [];
  if (digits !== undefined) return isPort(Number(digits)) ? { kind: "port", port: Number(digits) } : null;
  return isHostName(lower) ? { kind: "name", name: lower } : null;
}

function isPort(port: number): boolean {
  return port > 0 && port < 65_536;
}
