import { type Command, Option } from "commander";
import type { TokenJson } from "../control/access.ts";
import { formatTable } from "../platform/terminal/layout.ts";
import { type CommandContext, newCommand, numberParser, refuse } from "./command.ts";
import { localTime } from "./deployment-text.ts";
import { accessService } from "./service-access.ts";

interface CreateOptions {
  readonly name: string;
  readonly read?: boolean;
  readonly deploy?: boolean;
  readonly json?: boolean;
}

const tokenId = numberParser(1, Number.MAX_SAFE_INTEGER, "Not the number of a token.");

/** `hotpush token`: what programs use the API with. */
export function makeTokenCommand({ env, finish }: CommandContext): Command {
  const command = newCommand("token", "Make and revoke tokens, with which programs use the API.", [
    "hotpush token create --name ci --deploy    also deploys, cancels, pauses",
    "hotpush token list                         which there are, and their last use",
    "hotpush token revoke 2                     ends a token at once",
  ]);
  const create = newCommand("create", "Make a token. It is shown once, and kept nowhere.", [
    "hotpush token create --name grafana --read",
    "hotpush token create --name ci --deploy",
  ])
    .summary("Make a token")
    .requiredOption("--name <name>", "what it is for, as the record will name it")
    .addOption(new Option("--read", "it may look").conflicts("deploy"))
    .option("--deploy", "it may also deploy, cancel, roll back and pause")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ name, read, deploy, json }: CreateOptions) => {
      if (!read && !deploy) return finish(refuse("Give the token a scope: --read or --deploy."));
      const { post, terminal } = accessService(env, { directory: null });
      const answer = await post<{ secret: string }>("/tokens", { name, scope: deploy ? "deploy" : "read" });
      terminal.print(json ? JSON.stringify(answer) : answer.secret);
      finish(0);
    });
  const list = newCommand("list", "List the tokens, without their secrets.", ["hotpush token list"])
    .summary("List the tokens")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json }: { readonly json?: boolean }) => {
      const { get, terminal } = accessService(env, { directory: null });
      const answer = await get<{ tokens: readonly TokenJson[] }>("/tokens");
      terminal.print(...(json ? [JSON.stringify(answer)] : tokenLines(answer.tokens)));
      finish(0);
    });
  const revoke = newCommand("revoke", "End a token at once.", ["hotpush token revoke 2"])
    .summary("End a token")
    .argument("<id>", "the number of the token", tokenId)
    .action(async (id: number) => {
      const { post, terminal } = accessService(env, { directory: null });
      await post("/tokens/revoke", { id });
      terminal.print(`Token ${id} has ended.`);
      finish(0);
    });
  return command.addCommand(create).addCommand(list).addCommand(revoke);
}

function tokenLines(tokens: readonly TokenJson[]): readonly string[] {
  if (tokens.length === 0) return ["There are no tokens."];
  const rows = tokens.map(({ id, name, scope, createdAt, lastUsedAt }) => [
    String(id),
    name,
    scope,
    localTime(createdAt),
    lastUsedAt === null ? "never" : localTime(lastUsedAt),
  ]);
  return formatTable([["Token", "Name", "Scope", "Made", "Last used"], ...rows]);
}
