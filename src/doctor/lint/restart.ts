import { warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";

/** Hotpush's own policy has its own check (restart). A written "no" is intended: the service runs once. */
export const restartLint = lintCheck(
  "lint-restart",
  "every service starts again after a crash and a reboot",
  "every service does",
  ({ roles }) =>
    roles
      .filter(
        ({ kind, service }) => kind !== "run-once" && kind !== "hotpush" && !isIntended(service.restart),
      )
      .map(({ name }) => {
        const text = `${name} does not start again after a crash or a reboot. If it runs once, write restart: "no".`;
        return warning(text, { change: `services.${name}.restart: unless-stopped` });
      }),
);

function isIntended(policy: string | undefined): boolean {
  return policy === "always" || policy === "unless-stopped" || policy === "no";
}
