import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { type Check, judge, ok, problem, skipped, warning } from "../check.ts";
import { isInContainer } from "../in-container.ts";
import { quote } from "../quote.ts";
import { containerRestartFaults } from "./container-restart.ts";
import { hotpushServiceOf } from "./own-compose-service.ts";
import { readUnit } from "./unit.ts";

/** After a reboot nobody is there to start it. */
export const restartCheck: Check = {
  id: "restart",
  group: "Service",
  subject: "the service comes back after a crash and a reboot",
  async look(scene) {
    const compose = await scene.compose();
    const own = compose.kind === "model" ? hotpushServiceOf(compose.model) : null;
    if (own !== null) {
      const { restart } = own.service;
      if (restart === "always" || restart === "unless-stopped") return ok(`restart: ${restart}`);
      const text = `The compose service ${own.name} has no restart policy that survives a crash and a reboot.`;
      return judge([problem(text, { change: `services.${own.name}.restart: unless-stopped` })], "");
    }
    const unit = await readUnit(scene.scriptEnv);
    if (unit.kind === "unit") {
      const text = "systemd does not start Hotpush after a reboot.";
      const faults = unit.isEnabled ? [] : [problem(text, { command: "systemctl enable hotpush" })];
      return judge(faults, "the systemd unit is enabled");
    }
    if (isInContainer()) {
      const faults = await containerRestartFaults(scene);
      if (faults === null) return skipped("Docker knows, and cannot be asked about this container");
      return judge(faults, "Docker brings the container back");
    }
    const text = "No systemd unit and no compose service brings Hotpush back after a reboot.";
    return judge([warning(text, { command: installUnit() })], "");
  },
};

function installUnit(): string {
  const unit = fileURLToPath(new URL("../../../examples/systemd/hotpush.service", import.meta.url));
  return `cp ${quote(unit)} ${join("/etc/systemd/system", "hotpush.service")} && systemctl enable hotpush`;
}
