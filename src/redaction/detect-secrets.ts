import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseEnv } from "node:util";
import { listForeignDirectory, readForeignFile } from "#platform/foreign-files";

/** A part of a URL this long is a token, not a word of ordinary output. */
const leastTokenLength = 16;
/** A user name this long is a token. */
const leastUserTokenLength = 20;

/**
 * The secrets in a variable: its whole value if its name looks secret, and whatever its name, passwords and tokens within
 * the value: in URLs, `Authorization` headers, connection strings, JSON and webhook addresses.
 */
export function secretsInVariable(name: string, value: string): readonly string[] {
  const isWhole = looksSecret(name) && !isPath(value);
  const found = [
    ...(isWhole ? [value] : []),
    ...secretsInText(value),
    ...passwordsInFields(value),
    ...passwordInDsn(value),
    ...tokensInWebhook(name, value),
    ...secretsInJson(value),
  ];
  return [...new Set(found)].filter((secret) => secret !== "");
}

/** Passwords in URLs, and the credentials of `Authorization` headers. */
export function secretsInText(text: string): readonly string[] {
  const users = allOf(text, /\b[a-z][a-z\d+.-]{0,30}:\/\/([^\s/?#"]+)@/gi);
  const basic = allOf(text, /\bauthorization[:=] *basic +([^\s"']+)/gi);
  const bearer = allOf(text, /\bauthorization[:=] *(?:bearer|token) +([^\s"']+)/gi);
  return [...new Set([...basic, ...bearer, ...[...users, ...basic.map(fromBase64)].flatMap(passwordsOf)])];
}

/** The path of a key does not reveal the key, and git and ssh print it often. */
function isPath(value: string): boolean {
  return value.startsWith("/") && existsSync(value);
}

/**
 * `Password=…` as ADO.NET (`;`), StackExchange.Redis (`,`), libpq and command lines (blanks) and queries of URLs (`&`)
 * write it.
 */
function passwordsInFields(value: string): readonly string[] {
  const separator = value.includes(";") ? ";" : /,\s*[\w -]+=/.test(value) ? "," : "\\s";
  const quoted = `"(?:[^"]|"")*"|'(?:[^'\\\\]|\\\\.|'')*'`;
  const field = new RegExp(
    `(?:^|[${separator}])\\s{0,9}([\\w.-][\\w .-]{0,60}?)\\s{0,9}=\\s{0,9}(${quoted}|[^${separator}]*)`,
    "g",
  );
  const fields = [...value.matchAll(field), ...value.matchAll(/[?&]([\w.-]+)=([^&#\s]+)/g)];
  return fields
    .filter(([, name = ""]) => isSecretField(name))
    .flatMap(([, , given = ""]) => [...unquoted(given.trim()), percentDecoded(given.trim())]);
}

/** Besides names of variables, the short names of connection strings and signed URLs. */
function isSecretField(name: string): boolean {
  return /^(?:pwd|sig|signature|authorization)$/i.test(name) || looksSecret(name.replace(/[ .-]/g, "_"));
}

/** Within quotes, a quote is doubled (ADO.NET) or escaped by a backslash (libpq). */
function unquoted(text: string): readonly string[] {
  const quote = /^(["']).*\1$/s.exec(text)?.[1];
  if (quote === undefined) return [text];
  const inner = text.slice(1, -1);
  return [inner.replaceAll(quote + quote, quote), inner.replace(/\\(.)/g, "$1")];
}

/** `user:password@host` without a scheme, and Go's `user:password@tcp(host)/database`. */
function passwordInDsn(value: string): readonly string[] {
  const dsn = /^([^\s:/@]+):(\S{1,1000})@(?:\w*\([^()\s]*\)|[\w.-]+(?::\d+)?)(?:[/?]\S*)?$/.exec(
    value.trim(),
  );
  const [, user = "", password = ""] = dsn ?? [];
  const isAddress = /^(?:mailto|npm|sips?|xmpp|acct)$/i.test(user) || password.startsWith("//");
  return isAddress ? [] : [password, percentDecoded(password)];
}

/** Paths under which chat services accept messages from anyone who knows them. */
const webhookPaths = [
  /\/\/hooks\.slack(?:-gov)?\.com\/(?:services|workflows|triggers)\/([\w/-]+)/g,
  /\/\/(?:\w+\.)?discord(?:app)?\.com\/api\/(?:v\d+\/)?webhooks\/([\w/-]+)/g,
  /\/\/[\w.-]+\/webhookb2\/([\w@/-]+)/g, // Teams
  /\/\/[\w.:-]+(?:\/[\w-]+)*\/hooks\/([\w/-]+)/g, // Mattermost, Rocket.Chat
  /\/\/api\.telegram\.org\/bot([\w:-]+)/g,
  /\/\/[\w.-]+\/open-apis\/bot\/v2\/hook\/([\w-]+)/g, // Feishu
];

/** The secret part of a webhook's address: the end of its path, and each token in it. */
function tokensInWebhook(name: string, value: string): readonly string[] {
  const ends = webhookPaths.flatMap((path) => allOf(value, path));
  // Of other services: tokens in the path, if the name of the variable has HOOK in it.
  const others = /HOOK/i.test(name) ? allOf(value, /\bhttps?:\/\/[^\s/]+\/([^\s?#]+)/gi) : [];
  const tokens = [...ends, ...others].flatMap((end) => end.split(/[/:@]/));
  return [...ends, ...tokens.filter(({ length }) => length >= leastTokenLength)];
}

/** In JSON, each string counts as a variable of the name of its key; Docker's `auth` is a name and password in base64. */
function secretsInJson(value: string): readonly string[] {
  if (!/^\s*[{[]/.test(value)) return [];
  const found: string[] = [];
  try {
    JSON.parse(value, (key, inner: unknown) => {
      if (typeof inner !== "string") return;
      found.push(...secretsInVariable(key, inner), ...(key === "auth" ? passwordsOf(fromBase64(inner)) : []));
    });
  } catch {
    // It only begins like JSON, or is nested too deeply.
  }
  return found;
}

/** The password in `name:password`, and the name if it is as long as a token. */
function passwordsOf(user: string): readonly string[] {
  const [name = "", ...rest] = user.split(":");
  const given = [name.length < leastUserTokenLength ? "" : name, rest.join(":")];
  return given.filter((text) => text !== "").flatMap((text) => [text, percentDecoded(text)]);
}

function percentDecoded(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

function fromBase64(text: string): string {
  return Buffer.from(text, "base64").toString();
}

function allOf(text: string, pattern: RegExp): readonly string[] {
  return Array.from(text.matchAll(pattern), ([, given = ""]) => given);
}

/** Words anywhere in a name that mark its value as secret. */
const secretPart = /TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|CREDENTIAL|API_?KEY|PRIVATE_?KEY/i;
/** Short words that count only alone or at the end; `PWD` alone is the working directory. */
const secretWord = /(?:^|_)(?:PASS|PAT|AUTH|JWT)$|KEY(?:_|$)|(?<=.)_PWD$/i;
/** The value is the place or a property of a secret; the keys of git are names of settings. */
const about = /_(?:FILE|PATH|DIR|SOCK|TTL|EXPIRY|EXPIRES|LENGTH|TYPE|ALGORITHM)$|^GIT_CONFIG_KEY_/i;

/** Whether a variable of this name is likely to hold a secret. */
export function looksSecret(name: string): boolean {
  return (secretPart.test(name) || secretWord.test(name)) && !about.test(name);
}

/** Whether a variable of this name is likely to name the file of a secret: `DB_PASSWORD_FILE`. */
export function looksLikeSecretFile(name: string): boolean {
  return /_FILE$/i.test(name) && looksSecret(name.slice(0, -"_FILE".length));
}

/** More of them, or larger ones, would hold up the process: nobody has so many by hand. */
const [mostEnvFiles, mostEnvBytes] = [50, 512 * 1024];

/** A variable in a file. */
export interface FileVariable {
  readonly path: string;
  readonly name: string;
  readonly value: string;
}

/**
 * The variables in the environment files of a project, by their usual names: `.env`, `.env.production`, `app.env`.
 * Templates such as `.env.example` are left out.
 */
export function readEnvFiles(directory: string): readonly FileVariable[] {
  const paths = namesIn(directory)
    .filter((name) => /^\.env(?:\.|$)|\.env$/.test(name) && !/example|sample|template|dist/i.test(name))
    .slice(0, mostEnvFiles)
    .map((name) => join(directory, name));
  let leftBytes = mostEnvBytes;
  return paths.flatMap((path) => {
    const text = leftBytes > 0 ? readSecretFile(path) : "";
    leftBytes -= text.length;
    return Object.entries(parseEnv(text)).map(([name, value = ""]) => ({ path, name, value }));
  });
}

function namesIn(directory: string): readonly string[] {
  try {
    return listForeignDirectory(directory);
  } catch {
    return [];
  }
}

/** A file with a password or a key is smaller than this. */
const mostBytes = 64 * 1024;

/**
 * The text of the small file at `path` that holds a secret, or nothing if it is absent, unreadable or something else.
 *
 * @param options.namedBy the user who chose the path, if that is not the one of this process
 */
export function readSecretFile(
  path: string,
  options: { readonly mostBytes?: number; readonly namedBy?: number | undefined } = {},
): string {
  try {
    return readForeignFile(path, { mostBytes, ...options })
      .toString()
      .trim();
  } catch {
    return "";
  }
}
