import type { MissedDelivery } from "./shapes.ts";

const atHost: Readonly<Record<string, string>> = {
  // Of a signature with a timestamp that is too old, too.
  signature_invalid:
    "Give the webhook the value of WEBHOOK_SECRET. If it has that, compare the clocks of this server and the host.",
  signature_missing: "The webhook has no secret: give it the value of WEBHOOK_SECRET.",
  unsupported_media_type: "Set the content type of the webhook to application/json.",
};

/**
 * The missed deliveries of a status or a project, in words.
 *
 * @param missed undefined in answers of a `run` of an earlier version
 */
export function missedTexts({ missed = [] }: { readonly missed?: readonly MissedDelivery[] | undefined }) {
  return missed.map((one) => ({ at: one.at, text: missedText(one) }));
}

/** Says what came, and what to do if it was meant: anyone can send what is refused, in the name of any host. */
function missedText({ kind, reason, host, repository }: MissedDelivery): string {
  const advice =
    (Object.hasOwn(atHost, reason) && atHost[reason]) ||
    "The page of the delivery at the host has the answer.";
  if (kind === "refused")
    return `A delivery in the name of ${host} was refused (${reason}). If it was a push of yours: ${advice}`;
  const setting = reason === "other_repository" ? "REPOSITORY" : "BRANCH";
  return `A signed push of ${repository ?? "some repository"} was ignored (${reason}). If it is meant: remove ${setting} from the project's settings, or correct it.`;
}
