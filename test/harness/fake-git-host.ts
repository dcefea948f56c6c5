import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { Ajv } from "ajv";
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

interface FakeKey {
  readonly id: string;
  readonly title: string;
  readonly key: string;
  readonly isReadOnly: boolean;
}

/** A request as it is described, such as `PATCH hooks/{id}`; 1 is the first. */
export interface DescribedCall {
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
  const ajv = new Ajv({ strict: false });
  let lastId = 1_000;
  const host = {
    hooks: [] as FakeHook[],
    keys: [] as FakeKey[],
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
  function describe(request: IncomingMessage, body: unknown): { operation: string; ids: string[] } | null {
    const url = new URL(request.url ?? "", "http://host");
    const path = url.pathname.slice(description.prefix.length + 1);
    const ids: string[] = [];
    const template = path.replaceAll(/\/(\d{4,}|%7B.+?%7D)(?=\/|$)/g, (_, id: string) => {
      ids.push(decodeURIComponent(id));
      return "/{id}";
    });
    const operation = `${request.method} ${template}`;
    const known = description.operations[operation];
    const fault = (text: string) => void host.faults.push(`${operation}: ${text}`);
    if (!url.pathname.startsWith(`${description.prefix}/`) || known === undefined) {
      fault(`${request.url} is not described`);
      return null;
    }
    for (const parameter of url.searchParams.keys())
      if (!known.query?.includes(parameter)) fault(`${parameter} is no parameter`);
    if (Number(url.searchParams.get("per_page")) > (known.mostPerPage ?? 100)) fault("per_page is too large");
    for (const [header, value] of Object.entries({ "user-agent": "hotpush", ...description.auth }))
      if (request.headers[header] !== value.replace("{token}", hostToken)) fault(`${header} is wrong`);
    if (known.body === undefined && body !== null) fault("it takes no body");
    if (known.body !== undefined && request.headers["content-type"] !== "application/json")
      fault("content-type");
    if (known.body !== undefined && !ajv.validate(known.body, body)) fault(ajv.errorsText());
    return { operation, ids };
  }

  function newId(): string {
    lastId += 1;
    return String(lastId);
  }

  // biome-ignore lint/suspicious/noExplicitAny: a body of any host, which was validated
  function act(operation: string, [id = "", second = ""]: readonly string[], body: any, page: number) {
    const [method, collection = ""] = operation.split(/[ /]/);
    const isKey = collection === description.keys;
    const rows: (FakeHook | FakeKey)[] = isKey ? host.keys : host.hooks;
    const index = rows.findIndex((row) => row.id === id);
    if (id !== "" && index < 0) return [404, { message: "Not Found" }] as const;
    const send = (guid: string, event: string) =>
      host.deliveries.unshift({ id: newId(), guid, event, status: host.answeredStatus });
    if (operation.endsWith("/pings")) {
      send(`ping-${newId()}`, "ping");
      return [204, null] as const;
    }
    if (/(?:deliveries|events)$/.test(operation)) return [200, host.deliveries.map(shownDelivery)] as const;
    if (second !== "") {
      const sent = host.deliveries.find((one) => one.id === second);
      if (sent === undefined) return [404, { message: "Not Found" }] as const;
      send(sent.guid, sent.event);
      return name === "github" ? ([202, {}] as const) : ([201, { response_status: 200 }] as const);
    }
    if (method === "DELETE") {
      rows.splice(index, 1);
      return [204, null] as const;
    }
    const size = 2;
    if (method === "GET") {
      const shown = rows.slice((page - 1) * size, page * size).map(isKey ? showKey : showHook);
      const next = page * size < rows.length ? { next: "https://next" } : {};
      return [
        200,
        name === "bitbucket-cloud" ? { values: shown, pagelen: size, page, ...next } : shown,
      ] as const;
    }
    if (isKey) return addKey(body);
    const { url, secret, signing_token = secret, config = { url, secret: signing_token } } = body;
    const filter = body.branch_filter_strategy;
    if (index < 0 && name === "github" && host.hooks.some((hook) => hook.url === config.url))
      return [422, { message: "Validation Failed", errors: [{ message: "Hook already exists" }] }] as const;
    const hook = host.hooks[index] ?? {
      id: name === "bitbucket-cloud" ? `{${newId()}-uuid}` : newId(),
      url: "",
      secret: "",
    };
    hook.url = config.url;
    hook.secret = host.isOld ? "" : config.secret;
    if (filter === "all_branches") delete hook.branchFilter;
    hook.events =
      body.events ?? Object.keys(body).filter((one) => one.endsWith("_events") && body[one] === true);
    if (index < 0) host.hooks.push(hook);
    return [index < 0 ? 201 : 200, showHook(hook)] as const;
  }

  // biome-ignore lint/suspicious/noExplicitAny: as above
  function addKey({ title, label = title, key, read_only, can_push }: any) {
    const isTitleUnique = name === "gitea" || name === "forgejo";
    const taken = host.keys.some((one) => one.key === key || (isTitleUnique && one.title === label));
    if (taken)
      return [
        name === "gitlab" || name === "bitbucket-cloud" ? 400 : 422,
        { message: "key is already in use" },
      ] as const;
    const isReadOnly = read_only === true || can_push === false || name === "bitbucket-cloud";
    const added = { id: newId(), title: label, key, isReadOnly };
    host.keys.push(added);
    return [name === "bitbucket-cloud" ? 200 : 201, showKey(added)] as const;
  }

  function shownDelivery({ id, guid, event, status }: FakeDelivery): object {
    const time = "2026-11-25T20:00:00.123Z";
    if (name === "github")
      return { id: Number(id), guid, event, delivered_at: time, status_code: status, status: "OK" };
    return {
      id: Number(id),
      trigger: `${event}_hooks`,
      request_headers: { "Idempotency-Key": guid },
      created_at: time,
      response_status: status === 0 ? "internal error" : String(status),
    };
  }

  function showHook(row: FakeHook | FakeKey): object {
    const { id, url, secret } = row as FakeHook;
    if (name === "bitbucket-cloud") return { uuid: id, url, secret_set: secret !== "" };
    if (name !== "gitlab")
      return { id: Number(id), config: { url, content_type: "json", secret: "********" } };
    return { id: Number(id), url, ...(host.isOld ? {} : { signing_token_present: secret !== "" }) };
  }

  /** GitHub and Bitbucket leave the comment of a key out. */
  function showKey(row: FakeHook | FakeKey): object {
    const { id, title, key, isReadOnly } = row as FakeKey;
    const plain = key.split(" ").slice(0, 2).join(" ");
    if (name === "bitbucket-cloud") return { id: Number(id), label: title, key: plain };
    if (name === "gitlab") return { id: Number(id), title, key, can_push: !isReadOnly };
    return { id: Number(id), title, key: name === "github" ? plain : key, read_only: isReadOnly };
  }

  async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.on("error", () => {});
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const sent = Buffer.concat(chunks).toString();
    const body = sent === "" ? null : JSON.parse(sent);
    const described = describe(request, body);
    if (described === null) return void response.writeHead(501).end();
    host.calls.push(described.operation);
    const call = { operation: described.operation, number: host.calls.length };
    const other = host.instead(call);
    if (other === "hang") return;
    if (other !== null) return void response.writeHead(other.status, other.headers).end(other.body);
    const page = Number(new URL(request.url ?? "", "http://host").searchParams.get("page") ?? "1");
    const [status, answer] = act(described.operation, described.ids, body, page);
    host.onDone(call);
    response.writeHead(status, { "content-type": "application/json" });
    response.end(answer === null ? undefined : JSON.stringify(answer));
  }

  const port = await listenHere(scope, createServer(serve), address);
  /** What `--repository` takes. */
  return Object.assign(host, { port, address: `${name}+http://${address}:${port}/octo/shop` });
}
