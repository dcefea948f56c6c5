import { type Engine, getJson, readJson } from "./engine.ts";

/** A command in a container, by the names of the engine's API. What is left out is as for the container's own command. */
export interface Exec {
  readonly Cmd: readonly string[];
  readonly User?: string;
  readonly Privileged?: boolean;
  readonly WorkingDir?: string;
  /** `NAME=value`, beside the container's own. */
  readonly Env?: readonly string[];
}

/**
 * Runs a command in a running container to its end.
 *
 * @param patienceMs time that the command may take, on top of the usual time-out of the engine
 * @returns its exit code and what it printed
 * @throws EngineRefusal if the container does not run, or has no such program
 */
export async function execIn(engine: Engine, id: string, exec: Exec, patienceMs: number = 0) {
  const request = { ...exec, AttachStdout: true, AttachStderr: true };
  const { Id } = readJson<{ readonly Id: string }>(await engine.post(`/containers/${id}/exec`, request));
  // It answers until the command ends.
  const raw = await engine.post(`/exec/${Id}/start`, { Detach: false, Tty: false }, patienceMs);
  const { ExitCode } = await getJson<{ readonly ExitCode: number | null }>(engine, `/exec/${Id}/json`);
  return { exitCode: ExitCode, output: plainLog(raw) };
}

/** If a container has no terminal, the engine puts 8 bytes before each piece: the stream, three zeros, the length. */
export function plainLog(raw: Buffer): string {
  const isMultiplexed = raw.length >= 8 && (raw[0] ?? 9) <= 2 && raw.readUIntBE(1, 3) === 0;
  if (!isMultiplexed) return raw.toString();
  const pieces: string[] = [];
  for (let at = 0; at + 8 <= raw.length; ) {
    const length = raw.readUInt32BE(at + 4);
    pieces.push(raw.toString("utf8", at + 8, at + 8 + length));
    at += 8 + length;
  }
  return pieces.join("");
}
