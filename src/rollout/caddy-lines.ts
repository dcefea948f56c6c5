import { posix } from "node:path";

/** Caddy logs requests as long as this file is in the directory of the live files. */
export const countingFile = ".counting";
/** On the server, the logs of all projects. Caddy writes them as root, so no project may put a link here. */
export const requestsDirectory = ".requests";

/**
 * Caddy's log of the requests.
 *
 * @param livePath the directory of the live files, on the server that of all projects
 * @param project on the server
 */
export function requestsLog(livePath: string, project: string | null): string {
  return project === null
    ? posix.join(livePath, ".requests.log")
    : posix.join(livePath, requestsDirectory, `${project}.log`);
}

/** What would identify a person, and is not needed to count. */
const leftOut = [
  "request>headers",
  "request>uri",
  "request>remote_ip",
  "request>remote_port",
  "request>client_ip",
  "request>tls",
  "resp_headers",
  "user_id",
];

const formatLines = ["\tformat filter {", ...leftOut.map((field) => `\t\t${field} delete`), "\t}"];

/**
 * The lines of a site in a Caddyfile by which Caddy logs its requests, without what identifies a person, while a roll-out
 * counts them.
 *
 * @param livePath the directory of the live files, as Caddy sees it; on the server that of all projects
 * @param project on the server
 */
export function countingLines(livePath: string, project: string | null): readonly string[] {
  return [
    "log {",
    `\toutput file ${requestsLog(livePath, project)} {`,
    "\t\tmode 0644",
    "\t\troll_size 10MiB",
    "\t\troll_keep 1",
    "\t\troll_uncompressed",
    "\t}",
    ...formatLines,
    "}",
    "@uncounted not file {",
    `\troot ${posix.join(livePath, project ?? "")}`,
    `\ttry_files ${countingFile}`,
    "}",
    "log_skip @uncounted",
    ...answerLines,
  ];
}

/** The lines that log which container answered, and how; also where a second reverse_proxy takes over a request. */
export const answerLines: readonly string[] = [
  "log_append upstream {rp.upstream.hostport}",
  "log_append answered {rp.status_code}",
];

/** The lines as a part of a Caddyfile that is indented by `tabs`. */
export function indented(lines: readonly string[], tabs: number): string {
  return lines.map((line) => "\t".repeat(tabs) + line).join("\n");
}
