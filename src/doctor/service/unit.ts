import { runProgram } from "../run-program.ts";

/** The service's unit, as systemd's own files say; they can be read whether systemd runs or not. */
export type Unit = { readonly kind: "unit"; readonly isEnabled: boolean } | { readonly kind: "none" };

/** Looks for the unit `hotpush.service`. */
export async function readUnit(env: NodeJS.ProcessEnv): Promise<Unit> {
  const ran = await runProgram(["systemctl", "is-enabled", "hotpush.service"], { env });
  if (ran.kind === "missing") return { kind: "none" };
  const state = ran.output.trim();
  if (state === "" || state === "not-found") return { kind: "none" };
  return { kind: "unit", isEnabled: ran.code === 0 };
}
