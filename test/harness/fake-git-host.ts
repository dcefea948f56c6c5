import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Ajv } from "ajv";
import type { HostedKey } from "../../src/setup/host-apis.ts";
import { type HostName, hostDescriptions } from "./git-host-apis.ts";
import { listenHere } from "./listen.ts";
import type { Scope } from "./temporary.ts";

export const hostToken = "glpat-a_token.of-a_host-0123456789";

interface FakeHook {
  readonly id: string;
  url: string;
  secret: string;
  /** GitLab's: of which branches it sends pushes. */
  branchFilter?: string;
  /** What it sends, in the host's words. */
  events?: readonly string[];
}

interface FakeDelivery {
  readonly id: string;
  readonly guid: string;
  readonly event: string;
  /** 0: nobody answered. */
  readonly status: number;
}

type Reply = readonly [status: number, body: object | null];

/** A request as it is described, such as `PATCH hooks/{id}`; 1 is the first. */
interface DescribedCall {
  readonly operation: string;
  readonly number: number;
}

export interface FakeAnswer {
  readonly status: number;
  readonly body?: string;
  readonly headers?: Readonly<Record<string, string>>;
}

/** A git host with one repository, octo/shop, that refuses every request which its description does not have. */
export type FakeGitHost = Awaited<ReturnType<typeof startFakeGitHost>>;

/** @param address where it listens */
export async function startFakeGitHost(scope: Scope, name: HostName, address = "127.0.0.1") {
  const description = hostDescriptions[name];
  const isBitbucket = name === "bitbucket-cloud";
  const ajv = new Ajv({ strict: false });
  let lastId = 9_000;
  const host = {
    hooks: [] as FakeHook[],
    keys: [] as HostedKey[],
    /** The newest first. */
    deliveries: [] as FakeDelivery[],
    calls: [] as string[],
    /** What was not as described. */
    faults: [] as string[],
    /** Answers instead of the host; "hang": nobody does. null: the host does. */
    instead: (_: DescribedCall): FakeAnswer | "hang" | null => null,
    /** Called when a request was done, and not answered yet. */
    onDone(_: DescribedCall): void {},
    /** What pings, and deliveries that are sent again, are answered. */
    answeredStatus: 200,
    /** An old GitLab ignores signing_token. */
    isOld: false,
  };

  /** The operation that the request is, or null if the description has none. */
  function describe(request: IncomingMessage, url: URL, body: unknown) {
    const ids: string[] = [];
    const path = url.pathname.slice(description.prefix.length + 1);
    const template = path.replaceAll(/\/(\d{4,}|%7B.+?%7D)(?=\/|$)/g, (_, id: string) => {
      ids.push(decodeURIComponent(id));
      return "/{id}";
    });
    const operation = `${request.method} ${template}`;
    const known = description.operations[operation];
    const expect = (isSo: boolean, text: string) => isSo || host.faults.push(`${operation}: ${text}`);
    if (!url.pathname.startsWith(`${description.prefix}/`) || known === undefined) {
      expect(false, `${request.url} is not described`);
      return null;
    }
    for (const parameter of url.searchParams.keys())
      expect(known.query?.includes(parameter) === true, `${parameter} is no parameter`);
    const perPage = Number(url.searchParams.get("per_page"));
    expect(perPage <= (known.mostPerPage ?? 100), "per_page is too large");
    for (const [header, value] of Object.entries({ "user-agent": "hotpush", ...description.auth }))
      expect(request.headers[header] === value.replace("{token}", hostToken), `${header} is wrong`);
    expect(ajv.validate(known.body ?? { type: "null" }, body), ajv.errorsText());
    const isJson = request.headers["content-type"] === "application/json";
    expect(isJson || known.body === undefined, "content-type");
    return { operation, ids };
  }

  function newId(): string {
    lastId += 1;
    return String(lastId);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a body of any host, which was validated
  function act(operation: string, [id = "", second = ""]: readonly string[], body: any, page: number): Reply {
    const [method, collection = ""] = operation.split(/[ /]/);
    const isKey = collection === description.keys;
    const rows: (FakeHook | HostedKey)[] = isKey ? host.keys : host.hooks;
    const index = rows.findIndex((row) => row.id === id);
    const sent = host.deliveries.find((one) => one.id === second);
    if ((id !== "" && index < 0) || (second !== "" && sent === undefined)) return [404, {}];
    if (/(?:deliveries|events)$/.test(operation)) return [200, host.deliveries.map(showDelivery)];
    if (sent !== undefined || operation.endsWith("/pings")) {
      const { guid, event } = sent ?? { guid: `ping-${newId()}`, event: "ping" };
      host.deliveries.unshift({ id: newId(), guid, event, status: host.answeredStatus });
      return [202, {}];
    }
    if (method === "DELETE") {
      rows.splice(index, 1);
      return [204, null];
    }
    if (method === "GET") {
      const size = 2;
      const values = rows.slice((page - 1) * size, page * size).map(isKey ? showKey : showHook);
      const next = page * size < rows.length ? { next: "https://next" } : {};
      return [200, isBitbucket ? { values, page, ...next } : values];
    }
    if (isKey) return addKey(body);
    const { url, secret, signing_token = secret, config = { url, secret: signing_token } } = body;
    const newHookId = () => (isBitbucket ? `{${newId()}-uuid}` : newId());
    const hook = host.hooks[index] ?? { id: newHookId(), url: "", secret: "" };
    hook.url = config.url;
    hook.secret = host.isOld ? "" : config.secret;
    if (body.branch_filter_strategy === "all_branches") delete hook.branchFilter;
    hook.events =
      body.events ?? Object.keys(body).filter((one) => /_events$/.test(one) && body[one] === true);
    if (index < 0) host.hooks.push(hook);
    return [index < 0 ? 201 : 200, showHook(hook)];
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  function addKey({ title, label = title, key, read_only, can_push }: any): Reply {
    const isTitleUnique = name === "gitea" || name === "forgejo";
    const isTaken = host.keys.some((one) => one.key === key || (isTitleUnique && one.title === label));
    if (isTaken) return [422, { message: "key is already in use" }];
    const isReadOnly = read_only === true || can_push === false || isBitbucket;
    const added = { id: newId(), title: label, key, isReadOnly };
    host.keys.push(added);
    return [201, showKey(added)];
  }

  function showDelivery({ id, guid, event, status }: FakeDelivery): object {
    const time = "2026-11-25T20:00:00.123Z";
    if (name === "github") return { id: Number(id), guid, event, delivered_at: time, status_code: status };
    return {
      id: Number(id),
      trigger: `${event}_hooks`,
      request_headers: { "Idempotency-Key": guid },
      created_at: time,
      response_status: status === 0 ? "internal error" : String(status),
    };
  }

  function showHook(row: FakeHook | HostedKey): object {
    const { id, url, secret } = row as FakeHook;
    if (isBitbucket) return { uuid: id, url };
    if (name !== "gitlab") return { id: Number(id), config: { url } };
    return { id: Number(id), url, ...(host.isOld ? {} : { signing_token_present: secret !== "" }) };
  }

  /** GitHub and Bitbucket leave the comment of a key out. */
  function showKey(row: FakeHook | HostedKey): object {
    const { id, title, key, isReadOnly } = row as HostedKey;
    const shown = name === "github" || isBitbucket ? key.split(" ").slice(0, 2).join(" ") : key;
    const own = isBitbucket ? { label: title } : { title, read_only: isReadOnly, can_push: !isReadOnly };
    return { id: Number(id), key: shown, ...own };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {});
    const sent = Buffer.concat(await request.toArray()).toString();
    const body = sent === "" ? null : JSON.parse(sent);
    const url = new URL(request.url ?? "", "http://host");
    const described = describe(request, url, body);
    if (described === null) return void response.writeHead(501).end();
    host.calls.push(described.operation);
    const call = { operation: described.operation, number: host.calls.length };
    const other = host.instead(call);
    if (other === "hang") return;
    if (other !== null) return void response.writeHead(other.status, other.headers).end(other.body);
    const page = Number(url.searchParams.get("page") ?? "1");
    const [status, answer] = act(described.operation, described.ids, body, page);
    host.onDone(call);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(answer === null ? undefined : JSON.stringify(answer));
  }

  const port = await listenHere(scope, createServer(serve), address);
  /** What `--repository` takes. */
  return Object.assign(host, { address: `${name}+http://${address}:${port}/octo/shop` });
}
