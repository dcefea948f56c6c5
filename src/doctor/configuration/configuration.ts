import { newSecretCommand } from "../../config/secret.ts";
import { ownUid } from "../../platform/files.ts";
import { type Check, okUnless, problem, warning } from "../check.ts";
import { type Fix, quote } from "../fix.ts";
import type { Settings } from "../settings.ts";

/** Everything that the service would refuse at its start, reported together. */
export const configurationCheck: Check = {
  id: "configuration",
  group: "Configuration",
  subject: "every variable has a usable value",
  probe({ settings, configFaults, configWarnings }) {
    const unreadable = settings.fault ? [problem(settings.fault, makeReadable(settings))] : [];
    const faults = configFaults.map((text) => problem(text, fixOf(text, settings)));
    const warnings = configWarnings.map((text) => warning(text, fixOf(text, settings)));
    const source = settings.isFileThere ? `with ${settings.file}` : "from the environment";
    return okUnless([...unreadable, ...faults, ...warnings], `complete, ${source}`);
  },
};

function makeReadable({ file }: Settings): Fix {
  return { command: `chown ${ownUid()} ${quote(file)} && chmod 600 ${quote(file)}` };
}

/** Every sentence of the configuration begins with the name of the variable. */
function fixOf(text: string, settings: Settings): Fix {
  const name = /^[A-Z_]+/.exec(text)?.[0] ?? "";
  if (name === "WEBHOOK_SECRET_FILE" && !text.includes("both set")) return newSecretFile(settings);
  if (name !== "WEBHOOK_SECRET") return settings.unset(name);
  return text.includes("both set") ? settings.unset(name) : newSecret(settings);
}

/** Replaces the secret by one of 32 bytes. The git host needs the same one, which no command can give it. */
export function newSecret(settings: Settings): Fix {
  if (settings.env.WEBHOOK_SECRET_FILE) return newSecretFile(settings);
  return settings.set("WEBHOOK_SECRET", `"$(${newSecretCommand})"`);
}

function newSecretFile({ env }: Settings): Fix {
  const file = quote(env.WEBHOOK_SECRET_FILE ?? "");
  return { command: `${newSecretCommand} | install -m 600 /dev/stdin ${file}` };
}
