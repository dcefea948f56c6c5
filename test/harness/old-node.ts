import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { writeScript } from "./temporary.ts";

/** Makes a directory in `place` with a node that reports an old version. @returns it, and a PATH that starts with it */
export function oldNode(place: string): { readonly path: string; readonly env: { readonly PATH: string } } {
  const path = join(place, "old");
  mkdirSync(path, { recursive: true });
  writeScript(join(path, "node"), "#!/bin/sh\necho v20.20.2\n");
  return { path, env: { PATH: `${path}:${process.env.PATH}` } };
}

/** Makes a directory in `place` with only the programs that the launcher calls. @returns its path */
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
