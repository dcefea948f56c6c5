import { execFileSync } from "node:child_process";
import { accessSync, constants } from "node:fs";
import { join } from "node:path";

/** A program that the bench needs besides Node, and its Debian package. */
export interface Tool {
  readonly program: string;
  readonly package: string;
  /** The part of the report that is left out without it. */
  readonly leftOut: string;
}

export const wrk: Tool = {
  program: "wrk",
  package: "wrk",
  leftOut: "throughput and connections",
};
export const webhook: Tool = {
  program: "webhook",
  package: "webhook",
  leftOut: "the rows of adnanh/webhook",
};

/** True if the program is in the PATH. */
export function isInstalled({ program }: Tool): boolean {
  return (process.env.PATH ?? "").split(":").some((directory) => {
    try {
      accessSync(join(directory, program), constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

/** Says what is left out, and how to install the program. */
export function missingText({ program, package: name, leftOut }: Tool): string {
  return `${program} is not installed, so ${leftOut} are left out. Install it with: apt-get install ${name}`;
}

/** The version of the tool's Debian package, if known. */
export function versionOf({ package: name }: Tool): string {
  try {
    // biome-ignore lint/suspicious/noTemplateCurlyInString: dpkg-query fills it in
    return execFileSync("dpkg-query", ["--show", "--showformat=${Version}", name], { encoding: "utf8" });
  } catch {
    return "of unknown version";
  }
}
