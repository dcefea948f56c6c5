import { join } from "node:path";
import { newSecretCommand } from "../../config/secret.ts";
import { ownUid, statOf } from "../../platform/files.ts";
import { binDirectory } from "../../runner/environment.ts";
import { type CheckFinding, type Fix, ok, okUnless, problem, quote, skip, warning } from "../check.ts";
import type { DoctorContext } from "../context.ts";
import type { Settings } from "../settings.ts";

/** Everything that the service would refuse at its start, reported together. */
export function checkConfiguration({ settings, configFaults, configWarnings }: DoctorContext): CheckFinding {
  const unreadable = settings.fault ? [problem(settings.fault, makeReadable(settings))] : [];
  const faults = configFaults.map((text) => problem(text, fixOf(text, settings)));
  const warnings = configWarnings.map((text) => warning(text, fixOf(text, settings)));
  const source = settings.isFileThere ? `with ${settings.file}` : "from the environment";
  return okUnless([...unreadable, ...faults, ...warnings], `complete, ${source}`);
}

function makeReadable({ file }: Settings): Fix {
  return `chown ${ownUid()} ${quote(file)} && chmod 600 ${quote(file)}`;
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
  return `${newSecretCommand} | install -m 600 /dev/stdin ${quote(env.WEBHOOK_SECRET_FILE ?? "")}`;
}

/** Another user has other permissions. The service's database belongs to the service's user. */
export function checkUser({ statePath, settings }: DoctorContext): CheckFinding {
  const state = statOf(join(statePath, "hotpush.db"));
  if (!state) return skip("the service has not run yet");
  if (state.uid === ownUid()) return ok(`uid ${state.uid}`);
  const text = `The service's state belongs to uid ${state.uid}, but this is uid ${ownUid()}: the service may have other permissions than those reported here.`;
  const { uid, gid } = state;
  const file = settings.isFileThere ? ` --env-file ${quote(settings.file)}` : "";
  const home = `HOME="$(getent passwd ${uid} | cut -d: -f6)"`;
  const command = `${home} setpriv --reuid=${uid} --regid=${gid} --init-groups ${quote(join(binDirectory, "hotpush"))} doctor${file}`;
  return warning(text, command);
}
