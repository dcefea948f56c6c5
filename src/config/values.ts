import { BlockList, isIP } from "node:net";

/** The entries of a list that commas or blanks separate. */
function entriesOf(text: string): readonly string[] {
  return text.split(/[\s,]+/).filter((entry) => entry !== "");
}

/** The ranges of private networks and of this machine, as in Caddy's `private_ranges`. */
const privateRanges = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "127.0.0.0/8", "fd00::/8", "::1"];

/**
 * Reads IP addresses, subnets in CIDR notation and the word `private_ranges`, separated by commas or spaces.
 *
 * @returns null if any entry is something else
 */
export function parseAddressList(text: string): BlockList | null {
  const list = new BlockList();
  const ranges = entriesOf(text).flatMap((entry) => (entry === "private_ranges" ? privateRanges : [entry]));
  return ranges.every((range) => addRange(list, range)) ? list : null;
}

function addRange(list: BlockList, range: string): boolean {
  const [address = "", given, ...rest] = range.split("/");
  const version = isIP(address);
  if (version === 0 || address.includes("%") || rest.length > 0) return false;
  const family = version === 4 ? "ipv4" : "ipv6";
  const longest = version === 4 ? 32 : 128;
  const prefix = given ?? String(longest);
  if (!/^\d{1,3}$/.test(prefix) || Number(prefix) > longest) return false;
  list.addSubnet(address, Number(prefix), family);
  return true;
}

/** Reads a whole number of at most 9 digits from `least` to `most`. @returns null if `text` is anything else */
export function wholeNumber(text: string, least: number, most: number): number | null {
  return /^\d{1,9}$/.test(text) ? within(Number(text), least, most) : null;
}

/** `value` if it is a number from `least` to `most`, else null. */
export function within(value: number | null, least: number, most: number): number | null {
  return value !== null && value >= least && value <= most ? value : null;
}

/** Reads a duration from 1 s to 24 h, or 0 for never. @returns milliseconds, or null if `text` is anything else */
export function durationOrNever(text: string): number | null {
  return text === "0" ? 0 : within(parseDurationMs(text), 1_000, 24 * 3_600_000);
}

/** Reads an absolute path, without slashes at its end. @returns null if `text` is anything else */
export function absolutePath(text: string): string | null {
  return text.startsWith("/") && !text.includes("\0") ? text.replace(/(?<=.)\/+$/, "") : null;
}

/** Reads the webhook's URL, or only its site: then the path is `/webhook`. @returns null if `text` is no HTTP URL */
export function webhookUrl(text: string): URL | null {
  if (!/^https?:\/\//i.test(text) || !URL.canParse(text)) return null;
  const url = new URL(text);
  if (url.pathname === "/") url.pathname = "/webhook";
  return url;
}

/** The address of a project's webhook, from that of the service or of another project. null: the only project. */
export function webhookUrlOf(url: URL, project: string | null): URL {
  if (project === null) return url;
  const own = new URL(url);
  own.pathname = `${url.pathname.replace(/\/webhook(?:\/[^/]*)?$/, "")}/webhook/${project}`;
  return own;
}

/** Reads names of variables, none of them of a webhook secret. @returns null if any entry is something else */
export function variableNames(text: string): readonly string[] | null {
  const names = entriesOf(text);
  const areUsable = names.every((name) => /^[A-Za-z_]\w*$/.test(name) && !name.startsWith("WEBHOOK_SECRET"));
  return areUsable ? Object.freeze(names) : null;
}

/**
 * Reads patterns of paths, from the root of a repository; `!` before one leaves files out.
 *
 * @returns null if one begins like an option of git's patterns or like an absolute path, or leaves the repository
 */
export function pathPatterns(text: string): readonly string[] | null {
  const patterns = entriesOf(text);
  const areUsable = patterns.every((pattern) => {
    const path = pattern.replace(/^!/, "");
    return path !== "" && !/^[:/!]/.test(path) && !path.split("/").includes("..") && !path.includes("\0");
  });
  return areUsable ? Object.freeze(patterns) : null;
}

/**
 * Reads `checks`, which stands for every check of a commit, or the names of some, separated by commas; a comma in brackets belongs to
 * a name, such as `test (20, ubuntu)`.
 *
 * @returns null if there is none
 */
export function checkNames(text: string): "all" | readonly string[] | null {
  if (text === "checks") return "all";
  const names = text.split(/,(?![^()]*\))/).map((name) => name.trim());
  return names.every((name) => name !== "") ? Object.freeze(names) : null;
}

const unitsMs = { ms: 1, s: 1_000, m: 60_000, h: 3_600_000 } as const;

/** The longest duration for a timer: above 2^31 - 1 ms Node fires at once. */
const longestMs = 24 * unitsMs.h;

/**
 * Reads a duration such as `30m`, `90s`, `1h` or `500ms`, at most 24 h. A number needs a unit, so that nobody has to guess
 * it; `0` does not.
 *
 * @returns milliseconds, or null if `text` is no such duration
 */
export function parseDurationMs(text: string): number | null {
  if (text === "0") return 0;
  const match = /^(\d{1,9})(ms|s|m|h)$/.exec(text);
  if (!match) return null;
  const ms = Number(match[1]) * unitsMs[match[2] as keyof typeof unitsMs];
  return ms <= longestMs ? ms : null;
}

/** Formats a duration for a person: `850 ms`, `12.3 s`, `4 min 10 s`, `2 h 5 min`. */
export function formatDuration(ms: number): string {
  if (Math.round(ms) < 1_000) return `${Math.round(ms)} ms`;
  if (ms < unitsMs.m) return `${Math.round(ms / 100) / 10} s`;
  const minutes = Math.floor(ms / unitsMs.m);
  const text =
    minutes < 60
      ? `${minutes} min ${Math.floor((ms % unitsMs.m) / 1_000)} s`
      : `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return text.replace(/ 0 \w+$/, "");
}

const unitsBytes = { B: 1, KiB: 1024, MiB: 1024 ** 2, GiB: 1024 ** 3 } as const;

/**
 * Reads a size such as `25 MiB`, `512KiB` or `26214400B`; a bare number is refused.
 *
 * @returns bytes, or null if `text` is no such size
 */
export function parseSizeBytes(text: string): number | null {
  const match = /^(\d{1,9}) ?(B|KiB|MiB|GiB)$/.exec(text);
  return match ? Number(match[1]) * unitsBytes[match[2] as keyof typeof unitsBytes] : null;
}

/** Formats a size for a person: `512 B`, `1.5 MiB`, `72.4 GiB`. */
export function formatSize(bytes: number): string {
  const unit = (["GiB", "MiB", "KiB"] as const).find((one) => bytes >= unitsBytes[one]) ?? "B";
  return `${Math.round((bytes / unitsBytes[unit]) * 10) / 10} ${unit}`;
}
