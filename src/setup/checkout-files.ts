import { readFileSync } from "node:fs";
import { join } from "node:path";
import { projectNetwork, serviceAlias } from "#config/server";
import { namingFiles } from "#platform/compose";
import { CommandError } from "#problems";
import {
  type PlannedFile,
  planFile,
  type WantedFile,
  withoutOtherValues,
  withSettings,
} from "./planned-file.ts";
import { git, ownComposeFile, type SetupProject } from "./project.ts";
import type { Changes, LeftPort, ServiceChange } from "./served.ts";
import { ownRoot } from "./start.ts";

/**
 * The files that a checkout needs: deploy.sh, ours for compose, and what makes compose find it and git ignore it.
 *
 * @throws CommandError if `.env` is in the repository
 */
export async function planCheckoutFiles(
  { root, composeFiles, env }: SetupProject,
  overrideText: string,
): Promise<readonly PlannedFile[]> {
  if (await git(root, "ls-files", "--", ".env"))
    throw new CommandError(
      `.env is in the repository, so each deployment would take away what Hotpush adds to it. Where you commit: git rm --cached .env, commit and push. Then here: cd ${root} && cp .env .env.own && git pull && mv .env.own .env. Then run this again.`,
    );
  // Absolute paths, so that they are the same from any working directory.
  const list = namingFiles([...composeFiles, join(root, ownComposeFile)], env);
  const settings = [{ name: "COMPOSE_FILE", value: list, isOpen: false }];
  const ignored = `/${ownComposeFile}\n/.env\n`;
  const wanted: readonly WantedFile[] = [
    {
      name: "deploy.sh",
      mode: 0o755,
      purpose: "pulls, builds, replaces, checks; yours to change",
      make: (before) => before ?? readFileSync(join(ownRoot, "examples/deploy.sh"), "utf8"),
    },
    {
      name: ownComposeFile,
      mode: null,
      purpose: "your services as Caddy reaches them",
      make: () => overrideText,
    },
    {
      name: ".env",
      mode: null,
      purpose: `adds ${ownComposeFile} to your compose file`,
      make: (before) => withSettings(before ?? "", settings),
      shown: (text) => withoutOtherValues(text, settings),
    },
    {
      // Because .gitignore belongs to the repository.
      name: ".git/info/exclude",
      mode: null,
      purpose: `${ownComposeFile} and .env: this machine's alone`,
      make: (before) =>
        before?.includes(ignored) ? before : `${before?.trimEnd() ?? ""}\n${ignored}`.trimStart(),
    },
  ];
  return wanted.map((file) => planFile(root, file));
}

const header = `# Written by \`hotpush init\`; running that again keeps it up to date. Your compose file stays as it is.
# Caddy reaches the services below on a network that only it and they join.`;

/** The text of our compose file in a checkout: the changes, and the network that the project shares with Caddy. */
export function overrideText(project: string, all: Changes): string {
  const blocks = Object.entries(all).map(([name, change]) => serviceBlock(project, name, change));
  if (blocks.length === 0) return `${header}\nservices: {}\n`;
  const networks = `networks:\n  ${projectNetwork(project)}:\n    external: true\n`;
  return `${header}\nservices:\n${[...blocks, networks].join("\n")}`;
}

function serviceBlock(project: string, name: string, change: ServiceChange): string {
  const { isInDefault, kept, dropsContainerName } = change;
  const lines = [
    // Quoted, because YAML could read it as a number or a keyword.
    `  ${JSON.stringify(name)}:`,
    ...portLines(kept),
    "    networks:",
    ...(isInDefault ? ["      default:"] : []),
    `      ${projectNetwork(project)}:`,
    `        aliases: [${serviceAlias(name, project)}]`,
    ...(dropsContainerName ? ["    container_name: !reset null # Two containers cannot share it."] : []),
  ];
  return `${lines.join("\n")}\n`;
}

function portLines(kept: readonly LeftPort[]): readonly string[] {
  const ports = kept.flatMap(({ endpoint: { port, protocol, published } }) =>
    published.map(({ address, port: outside }) => {
      const parts = address === "" ? [outside].filter(Boolean) : [address, outside];
      return `      - "${[...parts, port].join(":")}/${protocol}"`;
    }),
  );
  if (ports.length === 0) return ["    ports: !reset [] # Caddy takes the requests."];
  return ["    ports: !override # Caddy takes the requests of the others.", ...ports];
}
