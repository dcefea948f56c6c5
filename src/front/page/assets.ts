import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import type { PageAnswer } from "./answer.ts";

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
