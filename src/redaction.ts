import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseEnvFile } from "#platform/env-file";
import { attempt } from "#platform/files";
import { listForeignDirectory, readForeignFile } from "#platform/foreign-files";

/*
 * Hides secrets in text, by best effort: it finds the known ones, in the known forms. docs/deploy-script.md says which.
 */

/** Replaces secrets in text by stars. */
export type Redactor = Readonly<ReturnType<typeof createRedactor>>;

/** Creates the redactor for `secrets`: as they are, and in URL, JSON and base64 encoding. Lines of a secret count by themselves. */
export function createRedactor(secrets: Iterable<string>) {
  const longestAt = createFinder(formsOf(bounded(secrets)));

  /** Redacts up to `end`, or to the first place after it that is in no secret. What begins at `last` may be incomplete. */
  function redact(text: string, end: number, last: number) {
    let shown = "";
    let coveredTo = 0;
    let at = 0;
    for (; at < end || (at < coveredTo && at < last); at += 1) {
      const length = longestAt(text, at);
      if (length === 0) continue;
      // Secrets that overlap are replaced as one.
      if (at >= coveredTo) shown += `${text.slice(coveredTo, at)}***`;
      coveredTo = Math.max(coveredTo, at + length);
    }
    return { shown: shown + text.slice(coveredTo, at), rest: text.slice(Math.max(at, coveredTo)) };
  }

  return {
    text: (text: string) => redact(text, text.length, text.length).shown,
    /** Redacts a text that goes on. `rest` is the end of it, as it is: a secret may have begun there. */
    beginning: (text: string) => redact(text, text.length - heldBack, text.length - longestPiece),
  };
}

/** What the forms of all secrets take in memory and time grows with this. */
const mostSecretBytes = 256 * 1024;

/** The parts of the secrets that come first; nobody has more by hand. */
function bounded(secrets: Iterable<string>): readonly string[] {
  let leftBytes = mostSecretBytes;
  return [...new Set([...secrets].flatMap(redactedPartsOf))].filter((part) => {
    leftBytes -= Buffer.byteLength(part);
    return leftBytes >= 0;
  });
}

/** Shorter values occur in ordinary output by chance ("root", "5432"), and any text contains their base64. */
const leastRedactedBytes = 6;
/** In a value of several lines, such as a private key, each line of at least this length is redacted by itself. */
const leastLineBytes = 12;

/** Common values: redacting them hides nothing and makes the output hard to read. */
const commonWords =
  /^(?:change-?me|default|disabled|docker|enabled|example|localhost|mariadb|master|mongodb|mysql|password|postgres|postgresql|production|rabbitmq|secret|staging|development|testing|undefined)$/i;

/** A line of PEM that only marks the beginning or the end. */
const pemBoundary = /^-----(?:BEGIN|END) [A-Z\d ]+-----$/;

/** The parts of a secret to redact: itself or its lines; none if they are too short or common. */
function redactedPartsOf(secret: string): readonly string[] {
  const lines = secret.split("\n").map((line) => line.trim());
  const least = lines.filter(Boolean).length === 1 ? leastRedactedBytes : leastLineBytes;
  const isCommon = (line: string) => commonWords.test(line) || pemBoundary.test(line);
  return lines.filter((line) => Buffer.byteLength(line) >= least && !isCommon(line));
}

/** The secrets themselves, and as programs write them into URLs and JSON, and in base64. */
function formsOf(secrets: readonly string[]): readonly string[] {
  const forms = secrets.flatMap((secret) => {
    const url = encodeURIComponent(secret.toWellFormed());
    const lowerUrl = url.replace(/%../g, (code) => code.toLowerCase());
    return [secret, url, lowerUrl, JSON.stringify(secret).slice(1, -1), ...base64FormsOf(secret)];
  });
  return [...new Set(forms.flatMap(piecesOf))];
}

/**
 * The characters of base64 that depend on `secret` alone at any position in a longer text. Three bytes make four characters,
 * so there are three variants. The characters at both ends that it shares with its neighbours are left out.
 */
function base64FormsOf(secret: string): readonly string[] {
  return [0, 1, 2].flatMap((shift) => {
    const bytes = Buffer.concat([Buffer.alloc(shift), Buffer.from(secret)]);
    const first = Math.ceil((shift * 8) / 6);
    const end = Math.floor((bytes.length * 8) / 6);
    return (["base64", "base64url"] as const).map((encoding) => bytes.toString(encoding).slice(first, end));
  });
}

/** A longer form is found by its pieces, so that the search at one place ends soon. */
const longestPiece = 64;

/** Far more than pieces that overlap take. */
const heldBack = 4 * 1024;

/** The pieces of a form; the last one overlaps the one before. */
function piecesOf(form: string): readonly string[] {
  const count = Math.ceil(form.length / longestPiece);
  return Array.from({ length: count }, (_, index) => {
    const from = Math.max(0, Math.min(index * longestPiece, form.length - longestPiece));
    return form.slice(from, from + longestPiece);
  });
}

/** @returns a function that gives the length of the longest form at a place, or 0, in time that does not grow with their number */
function createFinder(forms: readonly string[]): (text: string, at: number) => number {
  const known = new Set(forms);
  const groups = Map.groupBy(forms, (form) => form.slice(0, 2));
  const lengthsOf = (group: readonly string[]) =>
    [...new Set(group.map(({ length }) => length))].sort((one, other) => other - one);
  const lengths = new Map(Array.from(groups, ([start, group]) => [start, lengthsOf(group)]));
  /** Most places of an output end here, without a copy of two characters. */
  const starts = new Set(forms.map((form) => form.charCodeAt(0)));
  return (text, at) => {
    if (!starts.has(text.charCodeAt(at))) return 0;
    const isThere = (length: number) => known.has(text.slice(at, at + length));
    return lengths.get(text.slice(at, at + 2))?.find(isThere) ?? 0;
  };
}

/**
 * The secrets in a variable: its whole value if its name looks secret, and whatever its name, passwords and tokens within
 * the value: in URLs, `Authorization` headers, connection strings, JSON and webhook addresses.
 */
export function secretsInVariable(name: string, value: string): readonly string[] {
  // The path of a key does not reveal the key, and git and ssh print it often. Only its first directory is looked up, because that is
  // root's: to follow thousands of an owner's links would hold up the process.
  const [top] = /^\/[^/]+(?=\/)/.exec(value) ?? [];
  const isPath = top !== undefined && existsSync(top);
  return [
    ...(looksSecret(name) && !isPath ? [value] : []),
    ...secretsInText(value),
    ...passwordsInFields(value),
    ...(/HOOK/i.test(name) || knownWebhook.test(value) ? allOf(value, token) : []),
    ...secretsInJson(value),
  ].filter((secret) => secret !== "");
}

/** Passwords in URLs, and the credentials of `Authorization` headers. */
export function secretsInText(text: string): readonly string[] {
  const users = allOf(text, /\b[a-z][a-z\d+.-]{0,30}:\/\/([^\s/?#"]+)@/gi);
  const headers = allOf(text, /\bauthorization[:=] *(?:basic|bearer|token) +([^\s"']+)/gi);
  const decoded = headers.map((header) => Buffer.from(header, "base64").toString());
  return [...headers, ...[...users, ...decoded].flatMap(passwordsOf)];
}

/** A user name this long is a token. */
const leastUserTokenLength = 20;

/** The password in `name:password`, and the name if it is as long as a token. */
function passwordsOf(user: string): readonly string[] {
  const [name = "", ...rest] = user.split(":");
  const given = [name.length < leastUserTokenLength ? "" : name, rest.join(":")];
  return given.filter((text) => text !== "").flatMap((text) => [text, percentDecoded(text)]);
}

/** `Password=…` as connection strings, command lines and queries of URLs have it. */
function passwordsInFields(value: string): readonly string[] {
  const separator = value.includes(";") ? ";" : "\\s,&";
  const fields = value.matchAll(new RegExp(`([\\w.-]{1,60}) ?= ?([^${separator}]+)`, "g"));
  return [...fields]
    .filter(([, name = ""]) => /^(?:pwd|sig)$/i.test(name) || looksSecret(name.replace(/[.-]/g, "_")))
    .map(([, , given = ""]) => given.trim().replace(/^(["'])(.*)\1$/s, "$2"))
    .flatMap((password) => [password, percentDecoded(password)]);
}

/** Chat services that accept messages from anyone who knows an address. */
const knownWebhook = /\/\/(?:hooks\.slack\.com|discord(?:app)?\.com\/api\/webhooks|api\.telegram\.org)\//;
/** A part of a path this long is a token, not a word of ordinary output. */
const token = /[/:]((?:bot)?[\w-]{16,}(?::[\w-]+)?)/g;

/** In JSON, each string counts as a variable of the name of its key; Docker's `auth` is a name and password in base64. */
function secretsInJson(value: string): readonly string[] {
  if (!/^\s*[{[]/.test(value)) return [];
  const found: string[] = [];
  const read = (key: string, inner: unknown) => {
    if (typeof inner !== "string") return;
    const passwords = key === "auth" ? passwordsOf(Buffer.from(inner, "base64").toString()) : [];
    found.push(...secretsInVariable(key, inner), ...passwords);
  };
  // It may only begin like JSON, or be nested too deeply.
  attempt(() => JSON.parse(value, read), null);
  return found;
}

function percentDecoded(text: string): string {
  return attempt(() => decodeURIComponent(text), text);
}

function allOf(text: string, pattern: RegExp): readonly string[] {
  return Array.from(text.matchAll(pattern), ([, given = ""]) => given);
}

/** Words anywhere in a name that mark its value as secret. */
const secretPart = /TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY/i;
/** Short words that count only alone or at the end; `PWD` alone is the working directory. */
const secretWord = /(?:^|_)(?:PASS|PAT|AUTH|JWT|DSN)$|KEY(?:_|$)|(?<=.)_PWD$/i;
/** The value is the place or a property of a secret; the keys of git are names of settings. */
const about = /_(?:FILE|PATH|DIR|SOCK|TTL|EXPIRY|EXPIRES|LENGTH|TYPE|ALGORITHM)$|^GIT_CONFIG_KEY_/i;

/** Whether a variable of this name is likely to hold a secret. */
function looksSecret(name: string): boolean {
  return (secretPart.test(name) || secretWord.test(name)) && !about.test(name);
}

/** Whether a variable of this name is likely to name the file of a secret: `DB_PASSWORD_FILE`. */
export function looksLikeSecretFile(name: string): boolean {
  return /_FILE$/i.test(name) && looksSecret(name.slice(0, -"_FILE".length));
}

/** More of them, or larger ones, would hold up the process: nobody has so many by hand. */
const mostEnvFiles = 50;
const mostEnvBytes = 512 * 1024;

/**
 * The variables in the environment files of a project, by their usual names: `.env`, `.env.production`, `app.env`.
 * Templates such as `.env.example` are left out.
 */
export function readEnvFiles(directory: string) {
  const names = attempt(() => listForeignDirectory(directory), [])
    .filter((name) => /^\.env(?:\.|$)|\.env$/.test(name) && !/example|sample|template|dist/i.test(name))
    .slice(0, mostEnvFiles);
  let leftBytes = mostEnvBytes;
  return names.flatMap((file) => {
    const text = leftBytes > 0 ? readSecretFile(join(directory, file)) : "";
    leftBytes -= text.length;
    const read = Object.entries(parseEnvFile(text)).map(([name, value = ""]) => ({ name, value }));
    // Node cuts a plain value at each #, and compose only at one after a blank.
    const lines = text.split("\n").map((line) => line.split("="));
    const written = lines.map(([name = "", ...value]) => {
      return { name: name.trim(), value: value.join("=").replace(/\s#.*/, "").trim() };
    });
    return [...read, ...written.filter(({ value }) => value.includes("#"))];
  });
}

/**
 * The text of the small file at `path` that holds secrets, or nothing if it is absent, unreadable or something else: a user
 * can put anything in its place, and the service must go on.
 *
 * @param namedBy the user who chose the path, if that is not the one of this process
 */
export function readSecretFile(path: string, namedBy?: number): string {
  return attempt(
    () =>
      readForeignFile(path, { mostBytes: 64 * 1024, namedBy })
        .toString()
        .trim(),
    "",
  );
}
