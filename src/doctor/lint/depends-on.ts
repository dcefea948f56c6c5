import { warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";
import type { Role } from "./roles.ts";

/**
 * "Started" is not "ready": after a reboot an app would ask a database that does not answer yet. A proxy must not wait: it
 * holds requests up by itself, and the push that fixes a broken app comes through it.
 */
export const dependsOnLint = lintCheck(
  "lint-depends-on",
  "who depends on another waits until that is healthy",
  "nobody waits for less",
  ({ roles, model }) =>
    roles.filter(isNoProxy).flatMap(({ name, service }) =>
      Object.entries(service.depends_on ?? {}).flatMap(([other, { condition }]) => {
        const awaited = model.services[other];
        const kind = roles.find((role) => role.name === other)?.kind;
        if (condition === "service_healthy" || condition === "service_completed_successfully") return [];
        const hasCheck = awaited?.healthcheck !== undefined && !awaited.healthcheck.disable;
        if (!hasCheck && kind !== "data") return [];
        const text = `${name} does not wait until ${other} is healthy, only until it was started.`;
        const more = hasCheck ? "" : `; and give ${other} a healthcheck`;
        return [
          warning(text, { change: `services.${name}.depends_on.${other}.condition: service_healthy${more}` }),
        ];
      }),
    ),
);

function isNoProxy({ kind }: Role): boolean {
  return kind !== "proxy";
}
