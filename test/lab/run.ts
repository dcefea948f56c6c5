/**
 * `node test/lab/run.ts <command…>`: runs a command with a Docker to test against, and takes away what it started.
 * Where there can be none it runs it all the same: the tests then say why they are skipped.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeLab, openLab, unavailable } from "./lab.ts";

const [command = "true", ...args] = process.argv.slice(2);
const lab = await openLab();
const isReady = lab.kind === "ready";
if (!isReady) console.error(`${lab.reason} The tests on a real engine are NOT run.`);
const env = isReady ? lab.env : { ...process.env, [unavailable]: lab.reason };
const child = spawn(command, args, { env, stdio: "inherit" });
// The child got the terminal's signal too; once it has ended, the lab goes.
for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => child.kill(signal));
const [code]: (number | null)[] = await once(child, "exit");
process.exitCode = code ?? 1;
if (isReady && lab.wasStarted) await closeLab();
