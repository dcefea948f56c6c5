import { warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";

/**
 * "Started" is not "ready": after a reboot an app would ask a database that does not answer yet. A proxy must not wait: it
 * holds requests back by itself, and the push that fixes a broken app comes through it.
 */
export const dependsOnLint = lintCheck(
  "lint-depends-on",
  "a service that depends on another waits until that is healthy",
  "every such service waits",
  ({ roles, model }) =>
    roles
      .filter(({ kind }) => kind !== "proxy")
      .flatMap(({ name, service }) =>
        Object.entries(service.depends_on ?? {}).flatMap(([other, { condition }]) => {
          if (condition === "service_healthy" || condition === "service_completed_successfully") return [];
          const { healthcheck } = model.services[other] ?? {};
          const hasCheck = healthcheck !== undefined && !healthcheck.disable;
          const isData = roles.some((role) => role.name === other && role.kind === "data");
          if (!hasCheck && !isData) return [];
          const text = `${name} does not wait until ${other} is healthy, only until it has started.`;
          const more = hasCheck ? "" : `; and give ${other} a healthcheck`;
          const change = `services.${name}.depends_on.${other}.condition: service_healthy${more}`;
          return [warning(text, { change })];
        }),
      ),
);
