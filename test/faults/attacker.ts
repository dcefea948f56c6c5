/**
 * `node attacker.ts <JSON>`: does with the rights of `front` what a stranger who has taken it over would try. Prints,
 * for each attempt, "done" or why it failed.
 */
import { appendFileSync, openSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

type Place = "ownPath" | "projectsPath" | "secretsPath" | "statePath" | "checkout" | "runPid";
/** The places of a machine whose `front` was taken over. */
const prey = JSON.parse(process.argv[2] ?? "") as Readonly<Record<Place, string>>;
const { ownPath, projectsPath, secretsPath, statePath, checkout, runPid } = prey;

const attempts: Readonly<Record<string, () => unknown>> = {
  "own: read the settings": () => readFileSync(join(projectsPath, "shop.env")),
  "own: write in its directory": () => writeFileSync(join(ownPath, "note"), "x"),
  "read a secret": () => readFileSync(join(secretsPath, "shop.env")),
  "list the secrets": () => readdirSync(secretsPath),
  "read the record": () => readFileSync(join(statePath, "hotpush.db")),
  "write the record": () => appendFileSync(join(statePath, "hotpush.db"), "x"),
  "list logs": () => readdirSync(join(statePath, "projects")),
  "change deploy.sh": () => appendFileSync(join(checkout, "deploy.sh"), "touch /tmp/x\n"),
  "add a git hook": () => writeFileSync(join(checkout, ".git/hooks/post-merge"), "x"),
  "change the settings": () => appendFileSync(join(projectsPath, "shop.env"), "BRANCH=master\n"),
  "add a project": () => writeFileSync(join(projectsPath, "evil.env"), "x"),
  "add a secret": () => symlinkSync(join(projectsPath, "shop.env"), join(secretsPath, "evil.env")),
  "write beside its directory": () => writeFileSync(join(ownPath, "../evil"), "x"),
  "read the environment of run": () => readFileSync(`/proc/${runPid}/environ`),
  "open the memory of run": () => openSync(`/proc/${runPid}/mem`, "r+"),
  "open a file that run has open": () => readdirSync(`/proc/${runPid}/fd`),
  "kill run": () => process.kill(Number(runPid), "SIGKILL"),
  "give a command": () => reach(join(statePath, "control.sock")),
};

function reach(path: string): Promise<void> {
  return new Promise((resolve, reject) => {
    connect(path, resolve).on("error", reject);
  });
}

const results: Record<string, string> = {};
for (const [name, attempt] of Object.entries(attempts)) {
  try {
    await attempt();
    results[name] = "done";
  } catch (error) {
    results[name] = (error as NodeJS.ErrnoException).code ?? String(error);
  }
}
console.log(JSON.stringify(results));
process.exit();
