import type { Store } from "#platform/sqlite";
import type { Deployment } from "./deployment.ts";

/** Images that a registry has and that do not run, each as `ghcr.io/team/app:main@sha256:…`; or why nobody knows, with what to do. */
export type NewImages =
  | { readonly kind: "images"; readonly images: readonly string[] }
  | { readonly kind: "fault"; readonly detail: string };

/** Those of them that are deployed although nobody asks. */
export function withoutTried(store: Store, images: readonly string[]): readonly string[] {
  const back = imagesBack(store, "of all");
  return images.filter((image) => !back.includes(image));
}

/**
 * What the roll-out of a deployment gets as HOTPUSH_IMAGES: that it rolls out what the registries have now, except for these
 * images. What a person asks for rolls out all of them; a push all that were not taken back.
 */
export function imagesFor(store: Store, { trigger }: Deployment): string {
  if (trigger === "manual") return "newest";
  return ["newest", ...imagesBack(store, trigger === "push" ? "taken back" : "of all")].join(" ");
}

/** A variable has a limited size. The registry has only one of each name. */
const mostBack = 200;

/**
 * The images that stay back: those that were taken back, or rolled back from before another one of their name succeeded. Of all
 * that were tried, also those whose last deployment failed, and those of the last that succeeded: they are live, or its script
 * does not pull.
 */
function imagesBack(store: Store, which: "taken back" | "of all"): readonly string[] {
  const succeeded = "FROM deployments WHERE project = $project AND state = 'succeeded'";
  const sql = `SELECT image FROM (
      SELECT *, min(iif(state = 'succeeded', place, NULL)) OVER (PARTITION BY substr(image, 1, instr(image, '@'))
        ORDER BY place ROWS BETWEEN 1 FOLLOWING AND UNBOUNDED FOLLOWING) AS replaced_at
      FROM (SELECT image.value AS image, max(queue_order) AS place, state, is_taken_back
        FROM deployments, json_each(images) AS image WHERE project = $project
        AND state IN ('succeeded', 'failed', 'timed_out', 'cancelled') GROUP BY image.value))
    WHERE is_taken_back OR EXISTS (SELECT 1 ${succeeded} AND trigger = 'rollback'
        AND queue_order > place AND queue_order < coalesce(replaced_at, 9e18))
      OR (? AND (state <> 'succeeded' OR place = (SELECT max(queue_order) ${succeeded})))
    ORDER BY place DESC LIMIT ${mostBack}`;
  return store.all(sql, Number(which === "of all")).map(({ image }) => String(image));
}
