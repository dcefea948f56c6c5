import { ProblemError } from "#problems";
import type { Visitor } from "./visitors.ts";

/**
 * What somebody must be to make a call. A viewer looks and an operator acts: both are visitors of the page, known by a session
 * or a token. `scraper` is a viewer, or an address that may read the metrics. `front` is the process that faces the internet,
 * without a credential of a visitor. Over the operator's socket everything is allowed; what needs `server` is allowed there only.
 */
export type Right = "viewer" | "operator" | "scraper" | "front" | "server";

/**
 * Decides whether a call over front's socket is allowed.
 *
 * @param right of the call; null: there is no such call
 * @param visitor whose credential the request shows; null: nobody's
 * @param mayScrape whether the metrics are open to the address from which it is made
 * @throws ProblemError why it is not. For visitors, what only the operator's socket has is not there
 */
export function authorize(right: Right | null, visitor: Visitor | null, mayScrape: boolean): void {
  if (right === "front" || (right === "scraper" && mayScrape)) return;
  if (visitor === null)
    throw new ProblemError({
      code: "not_signed_in",
      detail: "Sign in: run hotpush open on the server, and follow the link.",
    });
  if (right === null || right === "server") throw new ProblemError(unknownCall);
  if (right === "operator" && visitor.role !== "operator")
    throw new ProblemError({
      code: "not_allowed",
      detail: `This takes an operator, or a token made with --deploy: ${visitor.name} may only look.`,
    });
}

export const unknownCall = {
  code: "not_found",
  detail: "This Hotpush does not know this call. Are both of the same version? See /api/openapi.json.",
} as const;
