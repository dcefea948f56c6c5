import { isJsonObject, type JsonObject } from "./hosts/host.ts";
import type { DeploymentSummary } from "./push.ts";

/** What a push would have led to, had it not been a dry run; one member says which. */
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
  /** The running deployment, which would end first. */
  readonly after?: DeploymentSummary;
}

/** The member of a body that makes its push a dry run. It is signed with the rest, and no git host sends it. */
export const dryRunMember = '"hotpush":{"dryRun":true}';

/**
 * Reads the marker of a dry run. Anything else in its place is malformed and not an ordinary push: its author meant that
 * nothing should happen, so a typo must not deploy.
 */
export function readDryRun(payload: JsonObject): "ordinary" | "dry-run" | "malformed" {
  if (!Object.hasOwn(payload, "hotpush")) return "ordinary";
  const { hotpush } = payload;
  const isAlone = isJsonObject(hotpush) && Object.keys(hotpush).join() === "dryRun";
  if (!isAlone || typeof hotpush.dryRun !== "boolean") return "malformed";
  return hotpush.dryRun ? "dry-run" : "ordinary";
}

/** The body byte for byte as it would be without the marker, so that it is recognised as a duplicate. */
export function withoutDryRun(body: Buffer): Buffer {
  const marker = `,${dryRunMember}`;
  const start = body.lastIndexOf(marker);
  if (start < 0) return body;
  return Buffer.concat([body.subarray(0, start), body.subarray(start + marker.length)]);
}
