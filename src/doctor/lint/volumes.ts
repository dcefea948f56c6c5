import { problem, warning } from "../check.ts";
import { dataOf, lintCheck } from "./lint-check.ts";

/** Usual directories of single-file databases and the like, as far as a path can show it. */
const likelyData = /sqlite|\.db$|^\/data(?:\/|$)|^\/var\/lib\//;

/** During a roll-out, two containers of a service write to its volumes. */
export const volumesLint = lintCheck(
  "lint-volumes",
  "no two containers write to one database",
  "no service with a rolling replacement has a database",
  ({ roles }) =>
    roles.flatMap(({ name, service, kind, label }) => {
      const recreate = { change: `services.${name}.labels: hotpush.rollout: recreate` };
      const data = dataOf(service);
      if (data !== null && (label === "live" || label === "scale")) {
        const text = `${name} has data (${data}), but with its label hotpush.rollout=${label} two containers of it run at once, which destroys the data.`;
        return [problem(text, recreate)];
      }
      if (kind !== "app" || label !== null) return [];
      const volume = service.volumes?.find(({ target, type }) => type !== "tmpfs" && likelyData.test(target));
      if (!volume) return [];
      const text = `${name} has the volume ${volume.target}: during a roll-out, two containers write to it for some seconds. If a database is in it, the old container must stop first (if not, set the label to live):`;
      return [warning(text, recreate)];
    }),
);
