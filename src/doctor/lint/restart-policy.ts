import { warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";

/** Hotpush's own policy has a check of its own (restart). A written "no" is meant: the service runs once. */
export const restartPolicyLint = lintCheck(
  "lint-restart",
  "every service comes back after a crash and a reboot",
  "every service does",
  ({ roles }) =>
    roles
      .filter(({ kind, service }) => kind !== "run-once" && kind !== "hotpush" && !isMeant(service.restart))
      .map(({ name }) => {
        const text = `${name} stays away after a crash or a reboot. If it runs once, write restart: "no".`;
        return warning(text, { change: `services.${name}.restart: unless-stopped` });
      }),
);

function isMeant(policy: string | undefined): boolean {
  return policy === "always" || policy === "unless-stopped" || policy === "no";
}
