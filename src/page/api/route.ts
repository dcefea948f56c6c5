import type { PageAnswer } from "../answer.ts";
import type { RunClient, Visit } from "../run-client.ts";

/** What the routes work with. */
export interface Api {
  readonly run: RunClient;
}

export interface ApiRequest {
  readonly visit: Visit;
  /** By the names in braces of the route's path. */
  readonly parameters: Readonly<Record<string, string>>;
  readonly query: URLSearchParams;
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
}

/** A route with what the OpenAPI document says of it. */
export interface ApiRoute {
  readonly summary: string;
  /** The right that it needs; null: none. */
  readonly right: "read" | "deploy" | null;
  readonly status: 200 | 202;
  /** The name of the schema of its JSON; else its media types. */
  readonly answer: string | readonly string[];
  readonly query?: Readonly<Record<string, string>>;
  /** The members of the JSON in its body, all of them optional texts. */
  readonly body?: Readonly<Record<string, string>>;
  readonly handle: (api: Api, request: ApiRequest) => Promise<PageAnswer>;
}
