import { gitHosts } from "#config/git-hosts";
import type { CommitStatus } from "#config/project";
import { askRepository } from "#notifications/commit-status";
import { attempt } from "#platform/files";
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

type DeliveryFields = Readonly<Record<keyof HostedDelivery, string>>;

/** How the API of a kind of git host takes webhooks and deploy keys, below the address of the repository. Fields of a row are named as `config.url`. */
interface HostApi {
  /** What a token needs to make and to remove both. */
  readonly token: string;
  readonly pageSize: string;
  /** Whether a list is an object with `values`. */
  readonly wraps?: true;
  readonly hook: { readonly id: string; readonly url: string; readonly isSigned?: string };
  /** @param hasChecks whether the checks of commits are to be sent as well as the pushes */
  readonly hookBody: (url: string, secret: string, hasChecks: boolean) => object;
  /**
   * null: a new webhook takes its place. An update would keep the old secret (editHook in Gitea's routers/api/v1/utils/hook.go), or
   * leave it disabled (GitLab's auto_disabling.rb).
   */
  readonly update: "PATCH" | "PUT" | null;
  readonly keys: string;
  /** Where a person adds one, below the repository's page. */
  readonly keysPage: string;
  readonly keyTitle: string;
  /** The fields of a key that can only read. */
  readonly readOnly: Readonly<Record<string, boolean>>;
  /** Whether it can send a ping, which deploys nothing. */
  readonly pings?: true;
  /** Where it lists what it has sent to a webhook, and sends one of them again; not all hosts do. */
  readonly deliveries?: {
    readonly list: string;
    readonly row: DeliveryFields;
    readonly again: (delivery: string) => string;
  };
}

export type ConnectedHost = CommitStatus["host"];

const gitea: HostApi = {
  token:
    "Settings, Applications: a token of an administrator of the repository, permission repository: Read and write",
  pageSize: "limit=50",
  hook: { id: "id", url: "config.url" },
  hookBody: (url, secret, hasChecks) => ({
    type: "gitea",
    active: true,
    events: hasChecks ? ["push", "status"] : ["push"],
    branch_filter: "{main,master}",
    config: { url, content_type: "json", secret },
  }),
  update: null,
  keys: "/keys",
  keysPage: "/settings/keys",
  keyTitle: "title",
  readOnly: { read_only: true },
};

export const hostApis: Readonly<Record<ConnectedHost, HostApi>> = {
  github: {
    ...gitea,
    token:
      "Settings, Developer settings, Fine-grained tokens: only this repository, with Webhooks and Administration: Read and write",
    pageSize: "per_page=50",
    hookBody: (url, secret, hasChecks) => ({
      active: true,
      events: hasChecks ? ["push", "check_run", "check_suite", "status"] : ["push"],
      config: { url, content_type: "json", secret, insecure_ssl: "0" },
    }),
    update: "PATCH",
    pings: true,
    deliveries: {
      list: "deliveries?per_page=100",
      row: { id: "id", guid: "guid", event: "event", sentAt: "delivered_at", status: "status_code" },
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
    pageSize: "per_page=50",
    hook: { id: "id", url: "url", isSigned: "signing_token_present" },
    hookBody: (url, secret, hasChecks) => ({
      url,
      push_events: true,
      pipeline_events: hasChecks,
      job_events: hasChecks,
      branch_filter_strategy: "all_branches",
      enable_ssl_verification: true,
      signing_token: secret,
    }),
    update: null,
    keys: "/deploy_keys",
    keysPage: "/-/settings/repository",
    keyTitle: "title",
    readOnly: { can_push: false },
    deliveries: {
      // More than 20 are refused.
      list: "events?per_page=20",
      row: {
        id: "id",
        guid: "request_headers.Idempotency-Key",
        event: "trigger",
        sentAt: "created_at",
        status: "response_status",
      },
      again: (delivery) => `events/${delivery}/resend`,
    },
  },
  "bitbucket-cloud": {
    token: "repository, Repository settings, Access tokens: Repositories: Admin, Webhooks: Read and write",
    pageSize: "pagelen=50",
    wraps: true,
    hook: { id: "uuid", url: "url" },
    hookBody: (url, secret, hasChecks) => {
      const checks = ["repo:commit_status_created", "repo:commit_status_updated"];
      const events = ["repo:push", ...(hasChecks ? checks : [])];
      return { description: "Hotpush", url, active: true, events, secret };
    },
    update: "PUT",
    keys: "/deploy-keys",
    keysPage: "/admin/access-keys/",
    keyTitle: "label",
    // Its access keys can only read.
    readOnly: {},
  },
};

const longestAnswerBytes = 4 * 1024 ** 2;
const mostPages = 100;

/** A repository at its host, whose webhooks and deploy keys the token may change. Every call throws a CommandError. */
export type RepositoryAtHost = ReturnType<typeof openRepository>;

/** @param secret the webhook's, which a host may repeat in an error: it is not shown. Empty: there is none yet */
export function openRepository(repository: CommitStatus, secret: string) {
  const api = hostApis[repository.host];
  const name = gitHosts[repository.host].title;

  async function ask(method: Parameters<typeof askRepository>[1], path: string, what: string, body?: object) {
    const options = { longestBytes: longestAnswerBytes };
    const answer = await askRepository(repository, method, path, body, options).catch((error) => {
      throw unreachable(repository, error);
    });
    const isGone = method === "DELETE" && answer.status === 404;
    if (isGone || isSuccess(answer.status)) return parseJson(answer.body.toString());
    throw refused(repository, answer, what, [repository.token.reveal(), secret].filter(Boolean));
  }

  /** The text at a field of a row; a row without its id is none. */
  function textOf(row: unknown, field: string, isNeeded = false): string {
    const value = field
      .split(".")
      .reduce((one: unknown, part) => (one as Readonly<Record<string, unknown>> | null)?.[part], row);
    if (!isNeeded || typeof value === "string" || typeof value === "number") return String(value ?? "");
    throw new HostError(
      "no_api",
      `${repository.url.host} answered something that is not ${name}'s API. Check --repository, and whether a proxy or a sign-in page is in front of it.`,
    );
  }

  function asHook(row: unknown): HostedHook {
    const { id, url, isSigned } = api.hook;
    return {
      id: textOf(row, id, true),
      url: textOf(row, url),
      isSigned: isSigned === undefined ? null : textOf(row, isSigned) === "true",
    };
  }

  function asKey(row: unknown): HostedKey {
    const id = textOf(row, "id", true);
    const isReadOnly = Object.entries(api.readOnly).every(([flag, is]) => textOf(row, flag) === `${is}`);
    return { id, title: textOf(row, api.keyTitle), key: textOf(row, "key"), isReadOnly };
  }

  function asDelivery(row: unknown, fields: DeliveryFields): HostedDelivery {
    const text = (name: keyof HostedDelivery) => textOf(row, fields[name], true);
    return {
      id: text("id"),
      guid: text("guid"),
      event: text("event").replace(/_hooks$/, ""),
      sentAt: new Date(text("sentAt")),
      // GitLab writes "internal error" if nobody answered.
      status: Number(text("status")) || 0,
    };
  }

  /** @param query null: all pages of it */
  async function list<Row>(path: string, what: string, asRow: (row: unknown) => Row, isPaged = true) {
    const rows: Row[] = [];
    for (let page = 1; page <= mostPages; page += 1) {
      const answer = await ask("GET", isPaged ? `${path}?${api.pageSize}&page=${page}` : path, what);
      const found = api.wraps ? (answer as { readonly values?: unknown } | null)?.values : answer;
      // What is no list has no id.
      rows.push(...(Array.isArray(found) ? found.map(asRow) : [asRow(found)]));
      const isLast = api.wraps && textOf(answer, "next") === "";
      if (!isPaged || isLast || (found as readonly unknown[]).length === 0) break;
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
      const hooks = await list("/hooks", "read the webhooks", asHook);
      return hooks.filter((one) => URL.canParse(one.url) && new URL(one.url).href === url.href);
    },
    listKeys: () => list(api.keys, "read the deploy keys", asKey),
    /** Makes a webhook, or gives the one that is there all its values again if the host can. */
    async saveHook(present: string | null, url: string, hasChecks: boolean): Promise<HostedHook> {
      const body = api.hookBody(url, secret, hasChecks);
      if (present === null || api.update === null)
        return asHook(await ask("POST", "/hooks", "make the webhook", body));
      return asHook(await ask(api.update, at("/hooks", present), "change the webhook", body));
    },
    removeHook: (one: string) => ask("DELETE", at("/hooks", one), "remove the webhook"),
    async addKey(title: string, key: string): Promise<HostedKey> {
      const body = { [api.keyTitle]: title, key, ...api.readOnly };
      return asKey(await ask("POST", api.keys, addingKey, body));
    },
    removeKey: (one: string) => ask("DELETE", at(api.keys, one), "remove the deploy key"),
    ping: (hook: string) => ask("POST", `${at("/hooks", hook)}/pings`, "send a ping"),
    /** What was sent lately, the newest first; none if the host does not list it. */
    async listDeliveries(hook: string): Promise<readonly HostedDelivery[]> {
      const { deliveries } = api;
      if (deliveries === undefined) return [];
      const path = `${at("/hooks", hook)}/${deliveries.list}`;
      const asRow = (row: unknown) => asDelivery(row, deliveries.row);
      const rows = await list(path, "read what it has sent", asRow, false);
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

/** null: it is no JSON. Whole numbers that JavaScript would round stay text: an id may be such a one. */
function parseJson(text: string): unknown {
  const exactly = (_key: string, value: unknown, { source }: { readonly source?: string } = {}) =>
    Number.isInteger(value) && !Number.isSafeInteger(value) ? source : value;
  return attempt(() => JSON.parse(text, exactly), null);
}

/** Why a host does not do what it is asked. */
export type HostFault = ReturnType<typeof codeOf> | "unreachable" | "no_api";

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

const addingKey = "add the deploy key";

/** What a documented status means, and what to do. What the host says is shown, but nothing of `hidden`. */
function refused(
  { host, url }: CommitStatus,
  answer: HttpAnswer,
  what: string,
  hidden: readonly string[],
): HostError {
  const { token } = hostApis[host];
  const name = gitHosts[host].title;
  const { status, body } = answer;
  const words = hidden.reduce((text, one) => text.replaceAll(one, "…"), wordsOf(body.toString()));
  const said = words === "" ? `${status}` : `${status}: ${printable(words)}`;
  const repository = url.pathname.slice(1);
  const correct =
    what === addingKey
      ? "A host takes a key only once: if another repository has it, remove .git/hotpush-deploy-key and run this again."
      : "Correct that, such as the webhook's address (hotpush init --url), and run this again.";
  const texts: Readonly<Record<ReturnType<typeof codeOf>, string>> = {
    unavailable: `${name} cannot ${what} now (${said}). Run this again in some minutes.`,
    token_invalid: `${name} does not accept the token (${said}). Make a new one: ${token}.`,
    token_too_weak: `The token may not ${what} at ${name} (${said}). It needs: ${token}.`,
    not_found: `${name} has no repository ${repository} that this token may administer (${said}). Check the address of the remote, and that the token is: ${token}.`,
    refused: `${name} refuses to ${what} (${said}). ${correct}`,
  };
  const code = codeOf(answer);
  return new HostError(code, texts[code]);
}

function codeOf({ status, headers }: HttpAnswer) {
  const isLimited = headers["retry-after"] !== undefined || headers["x-ratelimit-remaining"] === "0";
  if (status === 429 || status === 409 || status >= 500 || (status === 403 && isLimited))
    return "unavailable";
  if (status === 401) return "token_invalid";
  if (status === 403) return "token_too_weak";
  // A repository that was moved is answered with a redirect.
  return status === 404 || status < 400 ? "not_found" : "refused";
}

/** The texts of an error: `message`, `error` and what is below them, whatever form the host gives it. */
function wordsOf(text: string): string {
  const words: string[] = [];
  const collect = (name: string, value: unknown) => {
    const isWord = typeof value === "string" && !/^(?:type|status|code|resource|field|.*url)$/.test(name);
    if (isWord) words.push(value);
    return value;
  };
  // A proxy's page says nothing that helps.
  attempt(() => JSON.parse(text, collect), null);
  return words.join("; ");
}
