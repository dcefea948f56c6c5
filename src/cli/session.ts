import type { Command } from "commander";
import type { SessionJson } from "../control/access.ts";
import { formatTable } from "../platform/terminal/layout.ts";
import { type CommandContext, newCommand, numberParser } from "./command.ts";
import { localTime } from "./deployment-text.ts";
import { accessService } from "./service-access.ts";

const sessionId = numberParser(1, Number.MAX_SAFE_INTEGER, "Not the number of a session.");

/** `hotpush session`: who is signed in to the page. */
export function makeSessionCommand({ env, finish }: CommandContext): Command {
  const command = newCommand("session", "See who is signed in to the page, and end sessions.", [
    "hotpush session list        who is signed in, and from where",
    "hotpush session revoke 3    ends a session at once",
  ]);
  const list = newCommand("list", "List the sessions that have not ended.", ["hotpush session list"])
    .summary("List the sessions")
    .option("--json", "one JSON object (docs/cli.md)")
    .action(async ({ json }: { readonly json?: boolean }) => {
      const { get, terminal } = accessService(env, { directory: null });
      const answer = await get<{ sessions: readonly SessionJson[] }>("/sessions");
      terminal.print(...(json ? [JSON.stringify(answer)] : sessionLines(answer.sessions)));
      finish(0);
    });
  const revoke = newCommand("revoke", "End a session: its browser has to sign in again.", [
    "hotpush session revoke 3",
  ])
    .summary("End a session")
    .argument("<id>", "the number of the session", sessionId)
    .action(async (id: number) => {
      const { post, terminal } = accessService(env, { directory: null });
      await post("/sessions/revoke", { id });
      terminal.print(`Session ${id} has ended.`);
      finish(0);
    });
  return command.addCommand(list).addCommand(revoke);
}

function sessionLines(sessions: readonly SessionJson[]): readonly string[] {
  if (sessions.length === 0) return ["Nobody is signed in. For a link: hotpush open"];
  const rows = sessions.map(({ id, name, role, lastSeenAt, address }) => [
    String(id),
    name,
    role,
    localTime(lastSeenAt),
    address ?? "",
  ]);
  return formatTable([["Session", "Name", "Role", "Last seen", "Address"], ...rows]);
}
