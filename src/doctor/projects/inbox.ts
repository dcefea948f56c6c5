import { formatDuration } from "../../config/duration.ts";
import { ownUid } from "../../platform/files.ts";
import { type CheckFinding, type Fault, okUnless, problem, quote, skip } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import { unitState } from "../service/own-service.ts";
import type { RolesAnswer } from "./probe-roles.ts";

/** `run` takes within a second; a build does not hold it up. */
const longestWaitMs = 60_000;

/** Pushes go from `receive` to `run` over the socket of the inbox. */
export async function checkInbox(context: DoctorContext): Promise<CheckFinding> {
  const roles = await context.roles();
  if (roles === null) return skip("one process receives and deploys");
  const hasUnits = (await unitState(context)) !== null;
  const start = (role: "receive" | "run") =>
    hasUnits ? `systemctl start hotpush-${role}` : { change: `start: hotpush ${role}` };
  const faults: Fault[] = [];
  if (typeof roles.receive === "string") faults.push(unreached(roles, start("receive")));
  if ("fault" in roles.run) faults.push(problem(`hotpush run: ${roles.run.fault}`, start("run")));
  else if (roles.run.failure !== null && typeof roles.receive !== "string") {
    const text = `hotpush run cannot take pushes from ${roles.inboxSocket} (${roles.run.failure}). Its INBOX_SOCKET must name the same socket, and its user must be in the group of the socket.`;
    faults.push(problem(text));
  }
  return okUnless(
    [...faults, ...waiting(roles)],
    "receive answers, run takes from it, and nothing waits long",
  );
}

function unreached({ inboxSocket, receive }: RolesAnswer, start: Parameters<typeof problem>[1]): Fault {
  if (receive === "EACCES") {
    const text = `This user (uid ${ownUid()}) may not open ${inboxSocket}, so \`hotpush run\` as this user takes no pushes. It must be in the group of the socket. As root:`;
    const group = `"$(stat -c %G ${quote(inboxSocket)})"`;
    return problem(text, `usermod --append --groups ${group} "$(id -un ${ownUid()})"`);
  }
  return problem(
    `\`hotpush receive\` does not answer at ${inboxSocket} (${receive}): no push is taken.`,
    start,
  );
}

function waiting({ receive }: RolesAnswer): readonly Fault[] {
  if (typeof receive === "string" || receive.sinceMs === null) return [];
  const ageMs = Date.now() - receive.sinceMs;
  if (ageMs <= longestWaitMs) return [];
  const text = `The oldest push in the inbox has waited for ${formatDuration(ageMs)} (${receive.waiting} in all): \`hotpush run\` does not take them. Its log says why.`;
  return [problem(text)];
}

/** Whether `receive` answers on its socket: in another container its port cannot be reached. */
export async function doesReceiveAnswer({ roles }: DoctorContext): Promise<boolean> {
  const answer = await roles();
  return answer !== null && typeof answer.receive !== "string";
}
