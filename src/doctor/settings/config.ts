import { newSecretCommand } from "../../config/secret.ts";
import { type Check, type Cure, judge, problem, warning } from "../check.ts";
import { quote } from "../quote.ts";
import type { Settings } from "./settings.ts";

/** All that the service would refuse to start with, all at once. */
export const configCheck: Check = {
  id: "configuration",
  group: "Configuration",
  subject: "every variable has a value that can be used",
  look({ settings, configFaults, configWarnings }) {
    const unreadable = settings.fault ? [problem(settings.fault, readable(settings))] : [];
    const faults = configFaults.map((text) => problem(text, cureOf(text, settings)));
    const unwise = configWarnings.map((text) => warning(text, cureOf(text, settings)));
    const source = settings.isFileThere ? `with ${settings.file}` : "from the environment";
    return judge([...unreadable, ...faults, ...unwise], `complete, ${source}`);
  },
};

function readable({ file }: Settings): Cure {
  return { command: `chown ${process.getuid?.()} ${quote(file)} && chmod 600 ${quote(file)}` };
}

/** Every sentence of the configuration begins with the name of the variable. */
function cureOf(text: string, settings: Settings): Cure {
  const name = /^[A-Z_]+/.exec(text)?.[0] ?? "";
  if (name === "WEBHOOK_SECRET_FILE" && !text.includes("both set")) return newSecretFile(settings);
  if (name !== "WEBHOOK_SECRET") return settings.unset(name);
  return text.includes("both set") ? settings.unset(name) : newSecret(settings);
}

/** A secret of 32 bytes in place of what is set. The git host must get the same, which no command can do. */
export function newSecret(settings: Settings): Cure {
  if (settings.env.WEBHOOK_SECRET_FILE) return newSecretFile(settings);
  return settings.set("WEBHOOK_SECRET", `"$(${newSecretCommand})"`);
}

function newSecretFile({ env }: Settings): Cure {
  const file = quote(env.WEBHOOK_SECRET_FILE ?? "");
  return { command: `${newSecretCommand} | install -m 600 /dev/stdin ${file}` };
}
