import type { HostedRepository } from "../../config/commit-status.ts";
import type { Secret } from "../../config/secret.ts";
import type { HttpAnswer } from "../../platform/http.ts";

/** What is shown on a commit. */
export interface StatusOnCommit {
  readonly commit: string;
  readonly branch: string;
  /** Distinguishes it from those of other projects and programs: `hotpush/shop`. */
  readonly context: string;
  readonly state: "running" | "succeeded" | "failed" | "cancelled";
  readonly description: string;
  /** Where a click on it leads; null: nowhere. */
  readonly link: string | null;
}

/** A request to the API of a git host. */
export interface HostRequest {
  readonly method: "GET" | "POST" | "PUT";
  readonly url: URL;
  readonly body?: object;
}

/** How the API of a kind of git host takes what is shown there. */
export interface HostApi {
  readonly authorize: (token: Secret) => Readonly<Record<string, string>>;
  /** Answers 200 if the token shows the repository. */
  readonly repository: (repository: HostedRepository) => URL;
  readonly status: (repository: HostedRepository, status: StatusOnCommit) => HostRequest;
  /** Whether this answer to a status on a commit that is not there means that the token may show one. */
  readonly mayShow: (answer: Pick<HttpAnswer, "status">) => boolean;
  /** Whether an answer that looks like a refusal means that the host has it already. */
  readonly hasItAlready?: (answer: HttpAnswer) => boolean;
}

/** The parts of a repository's address at a host that has `owner/name`: what is before them, and both, encoded. */
export function ownerAndName({ url }: HostedRepository): { readonly root: string; readonly path: string } {
  const parts = url.pathname.split("/");
  return { root: `${url.origin}${parts.slice(0, -2).join("/")}`, path: parts.slice(-2).join("/") };
}

/** An answer to a token that is right, whatever it says of the commit. */
export function isPermitted({ status }: Pick<HttpAnswer, "status">): boolean {
  return status !== 401 && status !== 403 && status < 500;
}

/** Cut for a host that refuses longer texts. */
export function cut(text: string, mostCharacters: number): string {
  return text.length > mostCharacters ? `${text.slice(0, mostCharacters - 1)}…` : text;
}
