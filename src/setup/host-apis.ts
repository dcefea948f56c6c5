import * as v from "valibot";
import type { CommitStatus } from "#config/commit-status";
import { gitHosts } from "#config/git-hosts";
import { askRepository } from "#notifications/commit-status";
import type { HttpAnswer } from "#platform/http";
import { printable } from "#platform/terminal";
import { CommandError } from "#problems";

/** A webhook of a repository, as its host lists it. No host gives its secret back. */
export interface HostedHook {
  readonly id: string;
  readonly url: string;
  /** Whether the host signs what it sends; null: it does not say, because it always does. */
  readonly isSigned: boolean | null;
}

/** A deploy key of a repository, as its host lists it. */
export interface HostedKey {
  readonly id: string;
  readonly title: string;
  /** As in `id_ed25519.pub`; some hosts keep the comment. */
  readonly key: string;
  readonly isReadOnly: boolean;
}

/** What a host has sent to a webhook. */
export interface HostedDelivery {
  readonly id: string;
  /** The same if it is sent again. */
  readonly guid: string;
  readonly event: string;
  readonly sentAt: Date;
  /** What it was answered; 0: nothing. */
  readonly status: number;
}

/** How the API of a kind of git host takes webhooks and deploy keys, below the address of the repository. */
interface HostApi {
  /** What a token needs to make and to remove both. */
  readonly token: string;
  readonly page: (page: number) => string;
  /** Whether a list is an object with `values`. */
  readonly wraps?: true;
  readonly hook: v.GenericSchema<unknown, HostedHook>;
  /** @param hasChecks whether the checks of commits are to be sent as well as the pushes */
  readonly hookBody: (url: string, secret: string, hasChecks: boolean) => object;
  readonly update: "PATCH" | "PUT";
  /** What an update leaves out of the body. */
  readonly onlyNew?: readonly string[];
  readonly keys: string;
  /** Where a person adds one, below the repository's page. */
  readonly keysPage: string;
  readonly key: v.GenericSchema<unknown, HostedKey>;
  readonly keyBody: (title: string, key: string) => object;
  /** Whether it can send a ping, which deploys nothing. */
  readonly pings?: true;
  /** Where it lists what it has sent to a webhook, and sends one of them again; not all hosts do. */
  readonly deliveries?: {
    readonly list: string;
    readonly row: v.GenericSchema<unknown, HostedDelivery>;
    readonly again: (delivery: string) => string;
  };
}

export type ConnectedHost = CommitStatus["host"];

/** Numbers may be larger than those of JavaScript: `parseJson` leaves such ones as text. */
const id = v.pipe(v.union([v.number(), v.string()]), v.transform(String));
const listed50 = (page: number) => `per_page=50&page=${page}`;

const gitea: HostApi = {
  token:
    "Settings, Applications: a token of an administrator of the repository, permission repository: Read and write",
  page: (page) => `limit=50&page=${page}`,
  hook: v.pipe(
    v.object({ id, config: v.object({ url: v.optional(v.string(), "") }) }),
    v.transform((hook) => ({ id: hook.id, url: hook.config.url, isSigned: null })),
  ),
  hookBody: (url, secret, hasChecks) => ({
    type: "gitea",
    active: true,
    events: hasChecks ? ["push", "status"] : ["push"],
    branch_filter: "{main,master}",
    config: { url, content_type: "json", secret },
  }),
  update: "PATCH",
  onlyNew: ["type"],
  keys: "/keys",
  keysPage: "/settings/keys",
  key: v.pipe(
    v.object({ id, title: v.string(), key: v.string(), read_only: v.boolean() }),
    v.transform(({ read_only, ...key }) => ({ ...key, isReadOnly: read_only })),
  ),
  keyBody: (title, key) => ({ title, key, read_only: true }),
};

export const hostApis: Readonly<Record<ConnectedHost, HostApi>> = {
  github: {
    ...gitea,
    token:
      "Settings, Developer settings, Fine-grained tokens: only this repository, with Webhooks and Administration: Read and write",
    page: listed50,
    hookBody: (url, secret, hasChecks) => ({
      name: "web",
      active: true,
      events: hasChecks ? ["push", "check_run", "check_suite", "status"] : ["push"],
      config: { url, content_type: "json", secret, insecure_ssl: "0" },
    }),
    onlyNew: ["name"],
    pings: true,
    deliveries: {
      list: "deliveries?per_page=100",
      row: v.pipe(
        v.object({
          id,
          guid: v.string(),
          event: v.string(),
          delivered_at: v.string(),
          status_code: v.number(),
        }),
        v.transform(({ delivered_at: at, status_code: status, ...row }) => ({
          ...row,
          sentAt: new Date(at),
          status,
        })),
      ),
      again: (delivery) => `deliveries/${delivery}/attempts`,
    },
  },
  gitea,
  // Forgejo has Gitea's API, and a type of webhook and events of its own.
  forgejo: {
    ...gitea,
    hookBody: (url, secret, hasChecks) => ({
      ...gitea.hookBody(url, secret, hasChecks),
      type: "forgejo",
      events: hasChecks ? ["push", "action_run_success"] : ["push"],
    }),
  },
  gitlab: {
    token: "project, Settings, Access tokens: role Maintainer, scope api",
    page: listed50,
    hook: v.pipe(
      v.object({ id, url: v.string(), signing_token_present: v.optional(v.boolean(), false) }),
      v.transform(({ signing_token_present: isSigned, ...hook }) => ({ ...hook, isSigned })),
    ),
    hookBody: (url, secret, hasChecks) => ({
      url,
      push_events: true,
      pipeline_events: hasChecks,
      job_events: hasChecks,
      branch_filter_strategy: "all_branches",
      enable_ssl_verification: true,
      signing_token: secret,
    }),
    update: "PUT",
    keys: "/deploy_keys",
    keysPage: "/-/settings/repository",
    key: v.pipe(
      v.object({ id, title: v.string(), key: v.string(), can_push: v.boolean() }),
      v.transform(({ can_push, ...key }) => ({ ...key, isReadOnly: !can_push })),
    ),
    keyBody: (title, key) => ({ title, key, can_push: false }),
    deliveries: {
      // More than 20 are refused.
      list: "events?per_page=20",
      row: v.pipe(
        v.object({
          id,
          trigger: v.string(),
          request_headers: v.object({ "Idempotency-Key": v.string() }),
          created_at: v.string(),
          response_status: v.string(),
        }),
        v.transform((row) => ({
          id: row.id,
          guid: row.request_headers["Idempotency-Key"],
          event: row.trigger.replace(/_hooks$/, ""),
          sentAt: new Date(row.created_at),
          // It writes "internal error" if nobody answered.
          status: Number(row.response_status) || 0,
        })),
      ),
      again: (delivery) => `events/${delivery}/resend`,
    },
  },
  "bitbucket-cloud": {
    token: "repository, Repository settings, Access tokens: Repositories: Admin, Webhooks: Read and write",
    page: (page) => `pagelen=50&page=${page}`,
    wraps: true,
    hook: v.pipe(
      v.object({ uuid: v.string(), url: v.string() }),
      v.transform(({ uuid, url }) => ({ id: uuid, url, isSigned: null })),
    ),
    hookBody: (url, secret, hasChecks) => ({
      description: "Hotpush",
      url,
      active: true,
      events: hasChecks
        ? ["repo:push", "repo:commit_status_created", "repo:commit_status_updated"]
        : ["repo:push"],
      secret,
    }),
    update: "PUT",
    keys: "/deploy-keys",
    keysPage: "/admin/access-keys/",
    // Its access keys can only read.
    key: v.pipe(
      v.object({ id, label: v.nullish(v.string(), ""), key: v.string() }),
      v.transform(({ label, ...key }) => ({ ...key, title: label, isReadOnly: true })),
    ),
    keyBody: (label, key) => ({ label, key }),
  },
};

/** A repository at its host, whose webhooks and deploy keys the token may change. Every call throws a CommandError. */
export type RepositoryAtHost = ReturnType<typeof openRepository>;

/** @param secret the webhook's, which a host may repeat in an error: it is not shown. Empty: there is none yet */
export function openRepository(repository: CommitStatus, secret: string) {
  const api = hostApis[repository.host];
  const name = gitHosts[repository.host].title;

  async function ask(method: Parameters<typeof askRepository>[1], path: string, what: string, body?: object) {
    let answer: HttpAnswer;
    try {
      answer = await askRepository(repository, method, path, body, { longestBytes: longestAnswerBytes });
    } catch (error) {
      throw unreachable(repository, error as NodeJS.ErrnoException);
    }
    const isGone = method === "DELETE" && answer.status === 404;
    if (isGone || isSuccess(answer.status)) return answer.body.toString();
    throw refused(repository, answer, what, [repository.token.reveal(), secret].filter(Boolean));
  }

  function read<Value>(schema: v.GenericSchema<unknown, Value>, text: string): Value {
    const { success, output } = v.safeParse(schema, parseJson(text));
    if (success) return output;
    throw new HostError(
      "no_api",
      `${repository.url.host} answered something that is not ${name}'s API. Check --repository, and whether a proxy or a sign-in page is in front of it.`,
    );
  }

  async function list<Row>(path: string, row: v.GenericSchema<unknown, Row>, what: string) {
    const wrapped = v.object({ values: v.array(row), next: v.optional(v.string()) });
    const rows: Row[] = [];
    for (let page = 1; page <= mostPages; page += 1) {
      const text = await ask("GET", `${path}?${api.page(page)}`, what);
      const found = api.wraps ? read(wrapped, text) : { values: read(v.array(row), text), next: "" };
      rows.push(...found.values);
      if (found.values.length === 0 || found.next === undefined) break;
    }
    return rows;
  }

  const at = (path: string, one: string) => `${path}/${encodeURIComponent(one)}`;
  return {
    api,
    name,
    url: repository.url,
    /** Those that send to `url`. */
    async listHooks(url: URL): Promise<readonly HostedHook[]> {
      const hooks = await list("/hooks", api.hook, "read the webhooks");
      return hooks.filter((one) => URL.canParse(one.url) && new URL(one.url).href === url.href);
    },
    listKeys: () => list(api.keys, api.key, "read the deploy keys"),
    /** Makes a webhook, or gives the one that is there all its values again. */
    async saveHook(present: string | null, url: string, hasChecks: boolean): Promise<HostedHook> {
      const body = Object.entries(api.hookBody(url, secret, hasChecks));
      const changed = Object.fromEntries(body.filter(([name]) => !api.onlyNew?.includes(name)));
      return present === null
        ? read(api.hook, await ask("POST", "/hooks", "make the webhook", Object.fromEntries(body)))
        : read(api.hook, await ask(api.update, at("/hooks", present), "change the webhook", changed));
    },
    removeHook: (one: string) => ask("DELETE", at("/hooks", one), "remove the webhook"),
    addKey: async (title: string, key: string) =>
      read(api.key, await ask("POST", api.keys, "add the deploy key", api.keyBody(title, key))),
    removeKey: (one: string) => ask("DELETE", at(api.keys, one), "remove the deploy key"),
    ping: (hook: string) => ask("POST", `${at("/hooks", hook)}/pings`, "send a ping"),
    /** What was sent lately, the newest first; none if the host does not list it. */
    async listDeliveries(hook: string): Promise<readonly HostedDelivery[]> {
      if (api.deliveries === undefined) return [];
      const { list: path, row } = api.deliveries;
      const rows = read(
        v.array(row),
        await ask("GET", `${at("/hooks", hook)}/${path}`, "read what it has sent"),
      );
      return rows.toSorted((one, other) => other.sentAt.getTime() - one.sentAt.getTime());
    },
    sendAgain: (hook: string, delivery: string) =>
      ask("POST", `${at("/hooks", hook)}/${api.deliveries?.again(delivery)}`, "send the delivery again"),
  };
}

/** Of deliveries, the newest first, those whose last attempt was not answered with success, the oldest first. A ping deploys nothing. */
export function failedOf(deliveries: readonly HostedDelivery[]): readonly HostedDelivery[] {
  const newest = new Map(deliveries.toReversed().map((one) => [one.guid, one]));
  return [...newest.values()].filter(({ event, status }) => event !== "ping" && !isSuccess(status));
}

/** `push of 2026-11-25 20:00 UTC, answered with 502` */
export function deliveryText({ event, sentAt, status }: HostedDelivery): string {
  const time = sentAt.toISOString().slice(0, "2026-11-25T20:00".length).replace("T", " ");
  return `${event} of ${time} UTC, ${status === 0 ? "not answered" : `answered with ${status}`}`;
}

export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

const longestAnswerBytes = 4 * 1024 ** 2;
const mostPages = 100;

/** null: it is no JSON. Whole numbers that JavaScript would round stay text. */
function parseJson(text: string): unknown {
  const exactly = (_key: string, value: unknown, { source }: { readonly source?: string } = {}) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? source : value;
  try {
    return JSON.parse(text, exactly);
  } catch {
    return null;
  }
}

const codesOfStatuses = {
  401: "token_invalid",
  403: "token_too_weak",
  404: "not_found",
  409: "busy",
} as const;

/** Why a host does not do what it is asked. */
export type HostFault =
  | (typeof codesOfStatuses)[keyof typeof codesOfStatuses]
  | "unreachable"
  | "no_api"
  | "limited"
  | "moved"
  | "broken"
  | "refused";

/** The message is one sentence, and what to do. */
export class HostError extends CommandError {
  readonly code: HostFault;

  constructor(code: HostFault, message: string) {
    super(message);
    this.code = code;
  }
}

function unreachable({ host, url }: CommitStatus, { code }: NodeJS.ErrnoException): HostError {
  const why =
    code === "ETIMEDOUT" ? "does not answer within 10 s" : `cannot be reached (${code ?? "unknown error"})`;
  return new HostError(
    "unreachable",
    `${gitHosts[host].title} at ${url.host} ${why}. Check the name, DNS and firewall of this machine, and run this again.`,
  );
}

/** What a documented status means, and what to do. What the host says is shown, but nothing of `hidden`. */
function refused(
  { host, url }: CommitStatus,
  answer: HttpAnswer,
  what: string,
  hidden: readonly string[],
): HostError {
  const { token } = hostApis[host];
  const name = gitHosts[host].title;
  const { status, headers, body } = answer;
  const words = hidden.reduce(
    (text, one) => text.replaceAll(one, "…"),
    textsIn(parseJson(body.toString())).join("; "),
  );
  const said = words === "" ? `${status}` : `${status}: ${printable(words)}`;
  const repository = url.pathname.slice(1);
  const waitS = Number(headers["retry-after"] ?? Number.NaN);
  const correct = what.includes("key")
    ? "A host takes a key only once: if this checkout is a copy of another one, remove .git/hotpush-deploy-key and run this again."
    : "Correct that, such as the webhook's address (hotpush init --url), and run this again.";
  const texts: Readonly<Record<ReturnType<typeof codeOf>, string>> = {
    limited: `${name} has had too many requests (${status}). Run this again ${Number.isFinite(waitS) ? `in ${waitS} s` : "in some minutes"}.`,
    broken: `${name} could not ${what}, by a fault of its own (${said}). Run this again later.`,
    moved: `${name} has moved ${repository} (${said}). Give the remote its new address: git remote set-url origin <address>.`,
    token_invalid: `${name} does not accept the token (${said}). Make a new one: ${token}.`,
    token_too_weak: `The token may not ${what} at ${name} (${said}). It needs: ${token}.`,
    not_found: `${name} has no repository ${repository} that this token may administer (${said}). Check the address of the remote, and that the token is: ${token}.`,
    busy: `${name} is changing ${repository} at this moment (${said}). Run this again.`,
    refused: `${name} refuses to ${what} (${said}). ${correct}`,
  };
  const code = codeOf(answer);
  return new HostError(code, texts[code]);
}

function codeOf({ status, headers }: HttpAnswer): Exclude<HostFault, "unreachable" | "no_api"> {
  const isLimited = headers["retry-after"] !== undefined || headers["x-ratelimit-remaining"] === "0";
  if (status === 429 || (status === 403 && isLimited)) return "limited";
  if (status >= 500) return "broken";
  if (status >= 300 && status < 400) return "moved";
  return codesOfStatuses[status as keyof typeof codesOfStatuses] ?? "refused";
}

/** The texts of an error: `message`, `error` and what is below them, whatever form the host gives it. */
function textsIn(value: unknown): readonly string[] {
  if (typeof value === "string") return /^https?:/.test(value) ? [] : [value];
  if (Array.isArray(value)) return value.flatMap(textsIn);
  if (typeof value !== "object" || value === null) return [];
  const kept = Object.entries(value).filter(([name]) => !/^(?:type|status|code|resource|field)$/.test(name));
  return kept.flatMap(([, one]) => textsIn(one));
}
