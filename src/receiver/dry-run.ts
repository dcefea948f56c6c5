import type { JsonObject } from "./hosts/host.ts";
import { isJsonObject } from "./hosts/host.ts";
import type { DeploymentSummary } from "./push.ts";

/** What a push would have come to, had it not been a dry run; one member says which. */
export type Would =
  | { readonly deploy: PlannedDeployment }
  | { readonly duplicate: { readonly deployment: DeploymentSummary; readonly detail: string } }
  | { readonly ignore: { readonly reason: string; readonly detail: string } }
  /** It would be recorded, and fail at once: the script could not be started. */
  | { readonly fail: { readonly code: string; readonly detail: string } };

export interface PlannedDeployment {
  readonly ref: string;
  readonly commit: string;
  readonly when: "now" | "after";
  /** The deployment that runs and would be waited for. */
  readonly after?: DeploymentSummary;
}

/** The member of a body that makes its push a dry run. It is signed with the rest, and no git host sends it. */
export const dryRunMember = '"hotpush":{"dryRun":true}';

/**
 * Reads the marker of a dry run. Anything else in its place is malformed and not an ordinary push: who wrote it meant
 * that nothing should happen, so a slip of the pen must not deploy.
 */
export function readDryRun(payload: JsonObject): "ordinary" | "dry-run" | "malformed" {
  if (!Object.hasOwn(payload, "hotpush")) return "ordinary";
  const { hotpush } = payload;
  const isAlone = isJsonObject(hotpush) && Object.keys(hotpush).join() === "dryRun";
  if (!isAlone || typeof hotpush.dryRun !== "boolean") return "malformed";
  return hotpush.dryRun ? "dry-run" : "ordinary";
}

/** The body as it would have been without the marker, byte for byte, so that it is known again as a duplicate. */
export function withoutDryRun(body: Buffer): Buffer {
  const marker = `,${dryRunMember}`;
  const start = body.lastIndexOf(marker);
  if (start < 0) return body;
  return Buffer.concat([body.subarray(0, start), body.subarray(start + marker.length)]);
}
