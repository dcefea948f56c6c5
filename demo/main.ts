/** A tour of Hotpush with nothing simulated. It checks each statement before it prints it; if one is wrong, it exits with 1. */
import { existsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Deployment } from "../src/deployments/deployment.ts";
import { askApp } from "./app.ts";
import { deploymentSteps, type Step } from "./deployment-steps.ts";
import { type Pushed, pushVersion } from "./developer.ts";
import { makeDirectory } from "./directory.ts";
import { expectEqual } from "./expect.ts";
import { git } from "./git.ts";
import { deliver } from "./git-host/delivery.ts";
import { pushPayload } from "./git-host/push-payload.ts";
import { readRecord, stateOf } from "./record.ts";
import { makeScene, type Scene } from "./scene.ts";
import { during } from "./screen.ts";
import { createServiceLog } from "./service-log.ts";
import * as show from "./show.ts";
import { showFailure } from "./show-failure.ts";

const startMs = performance.now();
const directory = makeDirectory();
const log = createServiceLog();
try {
  await tour();
} catch (error) {
  showFailure(error, log.tail(12));
  // Child processes would keep this process alive; its exit handler ends them.
  process.exit(1);
}

async function tour(): Promise<void> {
  const scene = await setUp();
  const first = await deployPush(scene);
  const refusedCount = await refuseBadSignature(scene);
  const later = await pushDuringDeployment(scene);
  await close(scene, [first, ...later], refusedCount);
}

async function setUp(): Promise<Scene> {
  show.chapter(1, "The scene");
  show.paragraph(
    "A git host, a developer and a server, all on this machine and all real:",
    "git, a small web app, and Hotpush itself. Everything is removed at the end.",
  );
  const scene = await during(() => "Setting up", makeScene(directory, log));
  show.facts({
    Directory: directory.path,
    "Git host": "git-host/app.git, with a webhook for every push",
    Developer: "developer/, a clone",
    Server: "server/, a clone with the app and its deploy.sh",
    "The app": scene.appUrl,
    Hotpush: scene.service.url,
  });
  const answer = await askApp(scene.appUrl);
  expectEqual("The first answer of the app", answer, greeting(1));
  show.quote({ "The app answers": answer });
  return scene;
}

async function deployPush(scene: Scene): Promise<Pushed> {
  show.chapter(2, "A push deploys");
  show.paragraph("The developer commits version 2 and pushes it.");
  const before = await askApp(scene.appUrl);
  const pushed = await push(scene, 2);
  show.paragraph(
    "Hotpush verified the signature and wrote the push to disk before it sent that answer.",
    "In the background, deploy.sh runs on the server:",
  );
  await waitForDeployment(scene, pushed);
  const after = await askApp(scene.appUrl);
  expectEqual("The answers of the app before and after", [before, after], [greeting(1), greeting(2)]);
  show.quote({ "Before the push": before, Now: after });
  return pushed;
}

/** @returns how many deliveries were refused */
async function refuseBadSignature({ host, service, statePath, appUrl }: Scene): Promise<number> {
  show.chapter(3, "A forged push is refused");
  show.paragraph("Someone who does not know the secret claims that main is back at version 1.");
  const { stdout } = await git(host, "rev-parse", "main", "main~1");
  const [before = "", after = ""] = stdout.split("\n");
  const payload = await pushPayload(host, { before, after, ref: "refs/heads/main" });
  const { status, body } = await deliver(service.url, "a guess", payload);
  expectEqual("The answer to a bad signature", [status, body.code], [401, "signature_invalid"]);
  show.refusal(status, body.title ?? "", body.detail ?? "");
  const answer = await askApp(appUrl);
  expectEqual("The app after a forged push", answer, greeting(2));
  expectEqual("The number of deployments after a forged push", readRecord(statePath).length, 1);
  show.paragraph("Nothing was recorded, and nothing ran. The app still answers version 2.");
  return 1;
}

async function pushDuringDeployment(scene: Scene): Promise<readonly Pushed[]> {
  show.chapter(4, "Pushes during a deployment");
  show.paragraph("Version 3 has a slow build.");
  const buildIsOver = join(directory.path, "build-is-over");
  const third = await push(scene, 3, buildIsOver);
  const steps = deploymentSteps(log, third.deploymentId);
  await showStep(third, steps);
  show.end();
  show.paragraph("While it builds, versions 4 and 5 are pushed.");
  const fourth = await push(scene, 4);
  const fifth = await push(scene, 5);
  expectEqual(
    "The states of versions 4 and 5 when pushed",
    [fourth.state, fifth.state],
    ["queued", "queued"],
  );
  const states = readRecord(scene.statePath).slice(1).map(stateOf);
  const supersededByFifth = `superseded by ${fifth.deploymentId}`;
  expectEqual("The deployments of versions 3 to 5", states, ["running", supersededByFifth, "queued"]);
  show.paragraph(
    `One deployment runs at a time, and only the newest push waits. So ${fourth.deploymentId} was queued, and`,
    `then ${supersededByFifth}. Now the build ends, and deployment ${third.deploymentId} continues:`,
  );
  writeFileSync(buildIsOver, "");
  await waitForDeployment(scene, third, steps);
  show.paragraph(`Next is deployment ${fifth.deploymentId}, version 5:`);
  await waitForDeployment(scene, fifth);
  const answer = await askApp(scene.appUrl);
  expectEqual("The app after three pushes", answer, greeting(5));
  show.quote({ Now: answer });
  return [third, fourth, fifth];
}

async function close(scene: Scene, pushes: readonly Pushed[], refusedCount: number): Promise<void> {
  show.chapter(5, "What happened");
  const record = readRecord(scene.statePath);
  const states = pushes.map(({ commit }) => stateIn(record, commit));
  const superseded = `superseded by ${pushes.at(-1)?.deploymentId}`;
  expectEqual("The final states of the pushes", states, ["succeeded", "succeeded", superseded, "succeeded"]);
  const lostCount = states.filter((state) => state === "lost").length;
  expectEqual("The number of deployments", record.length, pushes.length);
  expectEqual("The exit code of the service", await scene.service.stop(), 0);
  directory.cleanUp();
  expectEqual("Whether the directory is still there", existsSync(directory.path), false);
  show.deployments(record, pushes);
  show.verdict(`${pushes.length} pushes accepted, ${refusedCount} refused, ${lostCount} lost.`);
  const tookSeconds = ((performance.now() - startMs) / 1_000).toFixed(1);
  show.paragraph(`That took ${tookSeconds} s. Every process has exited, and the directory is removed.`);
  show.paragraph('Read on in README.md: "Set it up" and "What you can rely on".');
}

function stateIn(record: readonly Deployment[], commit: string): string {
  const deployment = record.find((other) => other.commit === commit);
  return deployment ? stateOf(deployment) : "lost";
}

async function push(scene: Scene, version: number, buildWaitsFor?: string): Promise<Pushed> {
  const pushed = await during(
    () => `Pushing version ${version}`,
    pushVersion(scene.developer, version, buildWaitsFor),
  );
  show.command(`git commit -m "Version ${version}" && git push origin main`, pushed.output);
  return pushed;
}

/** Shows the remaining steps of a deployment, and checks that it succeeds. */
async function waitForDeployment(
  { statePath }: Scene,
  pushed: Pushed,
  steps = deploymentSteps(log, pushed.deploymentId),
): Promise<void> {
  while (await showStep(pushed, steps));
  show.end();
  const state = stateIn(readRecord(statePath), pushed.commit);
  expectEqual(`The state of deployment ${pushed.deploymentId} at its end`, state, "succeeded");
}

/** @returns false if there are no more steps */
async function showStep({ deploymentId }: Pushed, steps: AsyncGenerator<Step>): Promise<boolean> {
  const next = await during(() => `Deployment ${deploymentId}: ${log.lastOf(deploymentId)}`, steps.next());
  if (!next.done) show.step(next.value);
  return !next.done;
}

function greeting(version: number): string {
  return `Hello from version ${version}`;
}
