import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { problemAnswer, type Refusal } from "#platform/http-server";

/** What the page takes at most. */
export const longestBodyBytes = 16 * 1024;

/** What the page answers to one request. */
export type PageAnswer =
  | {
      readonly kind: "body";
      readonly status: number;
      readonly type: string;
      readonly body: string | Buffer;
      readonly headers?: Readonly<Record<string, string>>;
    }
  /** It writes for as long as it goes on, and ends the response. */
  | {
      readonly kind: "stream";
      readonly type: string;
      readonly write: (response: ServerResponse) => void | Promise<void>;
    };

export function jsonPage(value: object, status = 200): PageAnswer {
  return { kind: "body", status, type: "application/json", body: JSON.stringify(value) };
}

/** A problem of RFC 9457. */
export function problemPage(refusal: Pick<Refusal, "code" | "detail">): PageAnswer {
  const { status, body } = problemAnswer(refusal);
  return { kind: "body", status, type: "application/problem+json", body };
}

export function htmlPage(body: string, status = 200): PageAnswer {
  return { kind: "body", status, type: "text/html; charset=utf-8", body };
}

/** Leads a browser that has sent a form to what the form has started. `path` is never what a visitor sent. */
export function seeOther(path: string, headers: Readonly<Record<string, string>> = {}): PageAnswer {
  return { kind: "body", status: 303, type: "text/plain", body: "", headers: { location: path, ...headers } };
}

const directory = new URL("./assets/", import.meta.url);

const types: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  js: "text/javascript; charset=utf-8",
  svg: "image/svg+xml",
};

/** Read once: they are small, and a visitor cannot name any other file. */
const assets = new Map(
  readdirSync(directory).map((name) => [name, readFileSync(new URL(name, directory))] as const),
);

/** Changes with any of them, because modules import each other by name. */
const version = createHash("sha256")
  .update(Buffer.concat([...assets.values()]))
  .digest("base64url")
  .slice(0, 10);

/** The path at which a browser may keep an asset for ever. */
export function assetPath(name: string): string {
  return `/assets/${version}/${name}`;
}

/** @returns null if there is none at this path */
export function findAsset(path: string): PageAnswer | null {
  const [, asked, name = ""] = /^\/assets\/([\w-]+)\/([\w.-]+)$/.exec(path) ?? [];
  const body = assets.get(name);
  if (body === undefined) return null;
  const headers = asked === version ? { "cache-control": "public, max-age=31536000, immutable" } : {};
  return { kind: "body", status: 200, type: types[name.split(".").at(-1) ?? ""] ?? "", body, headers };
}
