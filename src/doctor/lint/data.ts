import { problem, warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";
import { dataOf } from "./roles.ts";

/** Where single-file databases and the like are kept, as far as a path can tell. */
const likelyData = /sqlite|\.db$|^\/data(?:\/|$)|^\/var\/lib\//;

/** While a service is rolled, two containers of it write to its volumes. */
export const volumesLint = lintCheck(
  "lint-volumes",
  "no two containers write to one database",
  "nothing that is rolled keeps a database",
  ({ roles }) =>
    roles.flatMap(({ name, service, kind, label }) => {
      const recreate = { change: `services.${name}.labels: hotpush.rollout: recreate` };
      const data = dataOf(service);
      if (data !== null && (label === "live" || label === "scale")) {
        const text = `${name} keeps data (${data}), but its label hotpush.rollout=${label} lets two of it run at once, which destroys the data.`;
        return [problem(text, recreate)];
      }
      if (kind !== "app" || label !== null) return [];
      const volume = service.volumes?.find(({ target, type }) => type !== "tmpfs" && likelyData.test(target));
      if (!volume) return [];
      const text = `${name} is rolled, so for some seconds two containers write to ${volume.target}. If a database is in it, that one must stop first (and if not, say live):`;
      return [warning(text, recreate)];
    }),
);
