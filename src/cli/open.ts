import type { Command } from "commander";
import { formatDuration } from "../config/duration.ts";
import { type CommandContext, newCommand, refuse } from "./command.ts";
import { accessService } from "./service-access.ts";

interface OpenOptions {
  readonly name?: string;
  readonly operator?: boolean;
  readonly json?: boolean;
}

interface LinkAnswer {
  readonly link: string;
  /** null: no page is set up. */
  readonly url: string | null;
  readonly role: string;
  readonly name: string;
  readonly lastsMs: number;
}

/** `hotpush open`: a link that signs somebody in to the page. */
export function makeOpenCommand({ env, finish }: CommandContext): Command {
  const description =
    "Make a link that signs one person in to the page, once. A viewer looks; an operator may also deploy, cancel, roll back and pause.";
  return newCommand("open", description, [
    "hotpush open                            for yourself",
    "hotpush open --name Ann                 for somebody who looks",
    "hotpush open --name Ben --operator      for somebody who also acts",
  ])
    .option("--name <name>", "somebody else, as the record will name them: a viewer")
    .option("--operator", "they are an operator, as you are")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ name, operator = name === undefined, json = false }: OpenOptions) => {
      const { post, terminal } = accessService(env, { directory: null });
      const person = name ?? (env.SUDO_USER || env.USER || "operator");
      const role = operator ? "operator" : "viewer";
      const answer = await post<LinkAnswer>("/links", { name: person, role });
      if (json) terminal.print(JSON.stringify(answer));
      else if (answer.url === null) return finish(refuse(noAddress));
      else terminal.print(...linkLines(answer, answer.url));
      finish(0);
    });
}

const noAddress =
  "The page has no address yet. In the checkout of a project: hotpush init --page https://hotpush.example.com. Without the server, set PAGE_URL (docs/page.md).";

function linkLines({ name, role, lastsMs }: LinkAnswer, url: string): readonly string[] {
  return [`${name} can sign in as ${role} within ${formatDuration(lastsMs)}, once:`, `  ${url}`];
}
