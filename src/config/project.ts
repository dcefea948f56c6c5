import { createHash } from "node:crypto";
import { readFileSync, realpathSync } from "node:fs";
import { resolve, sep } from "node:path";
import { attempt } from "#platform/files";
import { type HostedRepository, statusHosts } from "./git-hosts.ts";
import {
  type Fault,
  makeSecret,
  readNamedFile,
  readSecretText,
  type Secret,
  secretFault,
  secretWarnings,
} from "./secret.ts";
import { type Environment, projectVariables, readVariables, type secretVariables } from "./settings.ts";

/** The settings of one project: its repository, its secret, and how it is deployed. */
export type ProjectSettings = ReturnType<typeof readProjectSettings>["settings"];

export type Secrets = ProjectSettings["secrets"];

/** Who is sent a notification, and about what: failures and the first success after one, or everything. */
export type Notify = ProjectSettings["notify"];

/**
 * Reads the settings of one project.
 *
 * @param faults gets a sentence for each error; the settings may only be used if there is none
 * @returns with `warnings` for settings that are allowed but unwise
 * @param options.readsFiles false for a process that may not read the files of ALLOWED_SIGNERS, NOTIFY_FILE and COMMIT_STATUS_TOKEN_FILE
 */
export function readProjectSettings(
  env: Environment,
  faults: string[],
  { readsFiles = true }: { readonly readsFiles?: boolean } = {},
) {
  const values = readVariables(projectVariables, env, faults);
  const current = takeSecret(env, "WEBHOOK_SECRET", faults);
  const previous = takeSecret(env, "WEBHOOK_SECRET_PREVIOUS", faults);
  if (values.ALLOWED_SIGNERS && readsFiles) {
    const signers = readSigners(values.ALLOWED_SIGNERS, values.REPO_PATH ?? "/app");
    if ("fault" in signers) faults.push(signers.fault);
  }
  const targets = values.NOTIFY_FILE && readsFiles ? readNotifyFile(values.NOTIFY_FILE) : [];
  const { COMMIT_STATUS_URL: repository, COMMIT_STATUS_TOKEN_FILE: tokenPath } = values;
  const status = readsFiles ? readCommitStatus(repository, tokenPath) : null;
  const statusFault = status !== null && "fault" in status ? status.fault : null;
  if (values.DEPLOY_AFTER !== null) {
    if (repository === null || tokenPath === null) faults.push(noChecks);
    else if (statusFault !== null) faults.push(`${statusFault} DEPLOY_AFTER needs it to read checks.`);
  }
  if (values.DEPLOY_IMAGES !== null && values.ALLOWED_SIGNERS !== null) faults.push(unsignedImages);
  const settings = Object.freeze({
    repoPath: values.REPO_PATH,
    repository: values.REPOSITORY,
    branch: values.BRANCH,
    allowedSigners: values.ALLOWED_SIGNERS,
    deployTimeoutMs: values.DEPLOY_TIMEOUT,
    deploySilenceMs: values.DEPLOY_SILENCE,
    deployEnv: values.DEPLOY_ENV,
    deployPaths: values.DEPLOY_PATHS,
    deployAfter: values.DEPLOY_AFTER,
    deployImages: values.DEPLOY_IMAGES,
    catchUpIntervalMs: values.CATCH_UP_INTERVAL,
    notify: Object.freeze({ targets: "fault" in targets ? [] : targets, on: values.NOTIFY_ON }),
    commitStatus: status === null || "fault" in status ? null : status,
    secrets: Object.freeze({
      current: makeSecret(current),
      previous: previous === "" ? null : makeSecret(previous),
    }),
  });
  // A project is deployed even if nobody can be sent its results.
  const unsent = [
    ...("fault" in targets ? [`${targets.fault} Nobody is notified.`] : []),
    ...(statusFault === null ? [] : [`${statusFault} No result is shown on a commit.`]),
  ];
  return { settings, warnings: [...secretWarnings(current), ...unsent] };
}

const noChecks = `DEPLOY_AFTER is set, and COMMIT_STATUS_URL or COMMIT_STATUS_TOKEN_FILE is not: with that token the checks of a commit are read, at a host that has them (${statusHosts.join(", ")}).`;

const unsignedImages =
  "DEPLOY_IMAGES and ALLOWED_SIGNERS are both set, and the signature of a commit says nothing about an image: whoever can push to its registry would decide what runs. Leave one of them out.";

function takeSecret(env: Environment, name: keyof typeof secretVariables, faults: string[]) {
  const source = readSecretText(env, name);
  const fault = source.fault ?? secretFault(name, source.text);
  if (fault) faults.push(fault);
  return source.text;
}

/** Where the results of deployments are shown on the commit. */
export type CommitStatus = HostedRepository & { readonly token: Secret };

/**
 * Reads the token with which results are shown on commits.
 *
 * @returns null if no results are wanted
 */
export function readCommitStatus(
  repository: HostedRepository | null,
  tokenPath: string | null,
): CommitStatus | Fault | null {
  if (repository === null && tokenPath === null) return null;
  if (tokenPath === null) return { fault: "COMMIT_STATUS_URL is set, and COMMIT_STATUS_TOKEN_FILE is not." };
  if (repository === null) return { fault: "COMMIT_STATUS_TOKEN_FILE is set, and COMMIT_STATUS_URL is not." };
  const text = readNamedFile("COMMIT_STATUS_TOKEN_FILE", tokenPath, true);
  if (typeof text !== "string") return text;
  const token = text.trim();
  if (!/^[\x21-\x7e]{8,}$/.test(token))
    return { fault: `COMMIT_STATUS_TOKEN_FILE names ${tokenPath}, which is not one token on one line.` };
  return Object.freeze({ ...repository, token: makeSecret(token) });
}

const targetKinds = ["webhook", "slack", "discord", "ntfy", "apprise"] as const;

/** Where notifications go: a line of the file that NOTIFY_FILE names. */
export interface NotifyTarget {
  readonly kind: (typeof targetKinds)[number];
  /** Names it in the log and in the outbox, and shows nothing secret: `slack at hooks.slack.com (3f2c)`. */
  readonly name: string;
  /** Anyone who knows it may often post to it. */
  readonly url: Secret;
  /** The key that signs for a webhook, the token for ntfy. */
  readonly key: Secret | null;
}

const leastKeyBytes = 16;
const lineForm = `a kind (${targetKinds.join(", ")}), an http or https URL, and for a webhook its key, separated by spaces`;

/** Reads the file with the targets of notifications. */
export function readNotifyFile(path: string): readonly NotifyTarget[] | Fault {
  const text = readNamedFile("NOTIFY_FILE", path, true);
  if (typeof text !== "string") return text;
  const lines = text.split("\n").map((line) => line.trim());
  const targets: NotifyTarget[] = [];
  for (const [index, line] of lines.entries()) {
    if (line === "" || line.startsWith("#")) continue;
    const target = parseTarget(line);
    const place = `NOTIFY_FILE names ${path}, whose line ${index + 1}`;
    if ("flaw" in target) return { fault: `${place} ${target.flaw}` };
    if (targets.some(({ name }) => name === target.name))
      return { fault: `${place} repeats an earlier one.` };
    targets.push(target);
  }
  return Object.freeze(targets);
}

/** A flaw does not repeat the line: it may be a secret in the wrong place. */
function parseTarget(line: string): NotifyTarget | { readonly flaw: string } {
  const [word = "", address = "", key, ...rest] = line.split(/\s+/);
  const kind = targetKinds.find((one) => one === word);
  const url = /^https?:\/\//i.test(address) && URL.canParse(address) ? new URL(address) : null;
  if (kind === undefined || url === null || rest.length > 0) return { flaw: `is not ${lineForm}.` };
  if (kind === "webhook" && keyBytes(key ?? "").length < leastKeyBytes)
    return {
      flaw: `has no key of at least ${leastKeyBytes} bytes. Make one with: echo whsec_$(openssl rand -base64 32)`,
    };
  const hash = createHash("sha256").update(`${kind} ${url.href}`).digest("hex").slice(0, 4);
  const name = `${kind} at ${url.host} (${hash})`;
  return { kind, name, url: makeSecret(url.href), key: key === undefined ? null : makeSecret(key) };
}

/** The key of a webhook: in Standard Webhooks' form `whsec_` and base64, else the text itself. */
export function keyBytes(text: string): Buffer {
  return text.startsWith("whsec_") ? Buffer.from(text.slice("whsec_".length), "base64") : Buffer.from(text);
}

/** The keys of the file that ALLOWED_SIGNERS names: they may sign commits. */
export interface Signers {
  /** Lines in the format of allowed_signers(5). */
  readonly ssh: readonly SshSigner[];
  /** Armored GPG public keys. */
  readonly pgp: readonly string[];
}

type SshSigner = Readonly<NonNullable<ReturnType<typeof parseSigner>>>;

const pgpBlock = /-----BEGIN PGP PUBLIC KEY BLOCK-----[\s\S]*?-----END PGP PUBLIC KEY BLOCK-----/g;

/** Reads the file with the keys that may sign commits. */
export function readSigners(path: string, repoPath: string): Signers | Fault {
  const named = `ALLOWED_SIGNERS is ${JSON.stringify(path)}`;
  try {
    const text = readFileSync(path, "utf8");
    if (isWithin(path, repoPath))
      return {
        fault: `${named}, which is inside the repository: anyone who can push could add a key. Move it out of REPO_PATH.`,
      };
    const signers = parseSigners(text);
    return "flaw" in signers ? { fault: `${named}, ${signers.flaw}` } : signers;
  } catch (error) {
    const { code = "unknown error" } = error as NodeJS.ErrnoException;
    return { fault: `${named}, which cannot be read (${code}).` };
  }
}

/** Neither the path nor the file that it leads to may be in the repository. */
function isWithin(path: string, repoPath: string): boolean {
  const real = (one: string) => attempt(() => realpathSync(one), resolve(one));
  const roots = [resolve(repoPath), real(repoPath)].map((root) => root + sep);
  return [resolve(path), real(path)].some((one) => roots.some((root) => (one + sep).startsWith(root)));
}

function parseSigners(text: string): Signers | { readonly flaw: string } {
  const pgp = text.match(pgpBlock) ?? [];
  const rest = text.replace(pgpBlock, (block) => block.replace(/.+/g, "")).split("\n");
  const ssh: SshSigner[] = [];
  for (const [index, line] of rest.entries()) {
    if (/^\s*(?:#|$)/.test(line)) continue;
    const signer = parseSigner(line.trim());
    if (signer === null)
      return {
        flaw: `whose line ${index + 1} is neither "principals [options] keytype key" of allowed_signers nor part of a PGP public key block.`,
      };
    ssh.push(signer);
  }
  if (ssh.length + pgp.length === 0) return { flaw: "which has no key: nothing could be deployed." };
  return { ssh, pgp };
}

/**
 * Reads `principals [options] keytype key [comment]`; names and options may be quoted.
 *
 * @returns the fingerprint is as ssh-keygen prints it: `SHA256:…`; the times are in milliseconds since 1970, null: no limit
 */
function parseSigner(line: string) {
  const words = line.match(/(?:"[^"]*"|[^\s"])+/g) ?? [];
  const typeIndex = words.findIndex((word, index) => index > 0 && /^(?:ssh|ecdsa|sk)-[\w@.-]+$/.test(word));
  const [type = "", key = ""] = typeIndex < 0 ? [] : words.slice(typeIndex);
  const blob = Buffer.from(key, "base64");
  const isKey = blob.length > 4 && blob.subarray(4, 4 + blob.readUInt32BE(0)).toString() === type;
  if (typeIndex > 2 || !isKey) return null;
  const options = typeIndex === 2 ? (words[1] ?? "") : "";
  const [validFromMs, validUntilMs] = ["valid-after", "valid-before"].map((name) => instantOf(options, name));
  if (validFromMs === undefined || validUntilMs === undefined) return null;
  const digest = createHash("sha256").update(blob).digest("base64").replace(/=+$/, "");
  return { line, fingerprint: `SHA256:${digest}`, validFromMs, validUntilMs };
}

/** The value of an option: YYYYMMDD[HHMM[SS]] in the time zone of this machine, or UTC with Z; undefined: another form. */
function instantOf(options: string, name: string): number | null | undefined {
  if (!options.toLowerCase().includes(`${name}=`)) return null;
  const form = new RegExp(`${name}="(\\d{4})(\\d\\d)(\\d\\d)(?:(\\d\\d)(\\d\\d)(\\d\\d)?)?(Z?)"`, "i");
  const [, year, month, day, hours = "00", minutes = "00", seconds = "00", zone = ""] =
    form.exec(options) ?? [];
  const ms = Date.parse(`${year}-${month}-${day}T${hours}:${minutes}:${seconds}${zone.toUpperCase()}`);
  return Number.isNaN(ms) ? undefined : ms;
}
