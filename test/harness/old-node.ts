import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { writeScript } from "./temporary.ts";

/** Makes, in `place`, a directory with a node that only says it is an old one. @returns it, also as first on PATH */
export function oldNode(place: string): { readonly path: string; readonly env: { readonly PATH: string } } {
  const path = join(place, "old");
  mkdirSync(path, { recursive: true });
  writeScript(join(path, "node"), "#!/bin/sh\necho v20.20.2\n");
  return { path, env: { PATH: `${path}:${process.env.PATH}` } };
}

/** Makes, in `place`, a directory with what the launcher itself calls, and no more. @returns its path */
export function withoutNode(place: string): string {
  const path = join(place, "without");
  mkdirSync(path, { recursive: true });
  for (const name of ["sh", "dirname", "readlink"]) {
    if (!existsSync(join(path, name)))
      symlinkSync(
        execFileSync("sh", ["-c", `command -v ${name}`], { encoding: "utf8" }).trim(),
        join(path, name),
      );
  }
  return path;
}
