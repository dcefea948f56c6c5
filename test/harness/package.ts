import "./environment.ts";
import { execFileSync } from "node:child_process";
import { cpSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const checkout = fileURLToPath(new URL("../..", import.meta.url));

export interface Packed {
  readonly filename: string;
  readonly size: number;
  readonly files: readonly { readonly path: string; readonly mode: number }[];
}

const files = [".dockerignore", "Dockerfile", "LICENSE", "README.md", "package.json", "tsconfig.json"];

/** Packs a copy of the checkout, so that nothing is compiled into it. The tarball is in `directory`. */
export function pack(directory: string): Packed {
  const source = join(directory, "source");
  mkdirSync(source);
  for (const name of [...files, "tsconfig.build.json"]) cpSync(join(checkout, name), join(source, name));
  for (const name of ["bin", "docs", "examples", "src"]) {
    cpSync(join(checkout, name), join(source, name), { recursive: true });
  }
  symlinkSync(join(checkout, "node_modules"), join(source, "node_modules"));
  const packed = JSON.parse(npm(source, "pack", "--json", "--pack-destination", directory)) as object;
  // A list of packages up to npm 10, an object since.
  return Object.values(packed)[0] as Packed;
}

export function npm(directory: string, ...args: readonly string[]): string {
  return execFileSync("npm", args, {
    cwd: directory,
    // `prepare` must not write its cache into the checkout, whose node_modules this copy uses.
    env: { ...process.env, NODE_COMPILE_CACHE: join(directory, ".compiled") },
    encoding: "utf8",
    stdio: ["ignore", "pipe", "pipe"],
  });
}
