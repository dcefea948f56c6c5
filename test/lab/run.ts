/** `node test/lab/run.ts <command…>`: runs a command with a Docker to test against, and takes away what it started. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeLab, openLab } from "./lab.ts";

const [command, ...args] = process.argv.slice(2);
const lab = await openLab();
if (lab.kind === "unavailable") {
  console.error(`${lab.reason} The tests on a real engine were NOT run.`);
  process.exitCode = 69; // sysexits.h EX_UNAVAILABLE
} else if (command) {
  const child = spawn(command, args, { env: lab.env, stdio: "inherit" });
  const [code] = await once(child, "exit");
  process.exitCode = code ?? 1;
  if (lab.wasStarted) await closeLab();
}
