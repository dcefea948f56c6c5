import { warning } from "../check.ts";
import { lintCheck } from "./lint-check.ts";

/** Hotpush's own policy has a check of its own (restart). */
export const restartPolicyLint = lintCheck(
  "lint-restart",
  "every service comes back after a crash and a reboot",
  "every service does",
  ({ roles }) =>
    roles
      .filter(({ kind, service }) => kind !== "run-once" && kind !== "hotpush" && !comesBack(service.restart))
      .map(({ name }) => {
        const text = `${name} stays away after a crash or a reboot.`;
        return warning(text, { change: `services.${name}.restart: unless-stopped` });
      }),
);

function comesBack(policy: string | undefined): boolean {
  return policy === "always" || policy === "unless-stopped";
}
