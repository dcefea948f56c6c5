import { statSync } from "node:fs";
import { isIP } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { parseEnv } from "node:util";
import { machineServices, servicesOf } from "../config/machine-part.ts";
import { parseSubnet } from "../config/subnet.ts";
import { NotRunningError, openHold } from "../control/client.ts";
import { networkRangeDefault } from "../init/on-machine/machine-files.ts";
import type { MachineSetup } from "../init/on-machine/plan-on-machine.ts";
import { isMachinePartRunning, isUserKnown, recreateRun, startMachinePart } from "../machine-part/engine.ts";
import { makeProjectNetwork } from "../machine-part/networks.ts";
import { connectEngine } from "../platform/docker/engine.ts";
import { sendHttp } from "../platform/http.ts";
import { type CommandEnding, hasSucceeded, runInForeground } from "../platform/run-command.ts";
import { readUser } from "../platform/users.ts";
import { CommandError } from "../problems.ts";
import { type SendRequest, secretToSend, send } from "../send/send.ts";

/**
 * Makes the network of the project, starts the machine part if it does not run as its files say, and waits until it accepts
 * deliveries of the project.
 *
 * @throws CommandError if it does not start
 */
export async function startOnMachine(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  const { name, holders, changedServices } = setup;
  await makeProjectNetwork(connectEngine(env.DOCKER_HOST), name, networkRange(setup));
  const isRunning = await isMachinePartRunning(servicesOf(setup.place.env), env);
  if (holders.length > 0) await takePorts(setup, env);
  if (!isRunning) await start(setup, env);
  else if (changedServices.includes(machineServices.run))
    await whileQuiet(setup, env, () => start(setup, env));
  else if (changedServices.length > 0) await start(setup, env);
  if (isRunning && (await isOwnerNew(setup, env))) await whileQuiet(setup, env, () => showOwner(setup, env));
  await untilAccepted(setup);
  await untilServed(setup);
}

function networkRange({ place }: MachineSetup) {
  const text = place.env.NETWORK_RANGE || networkRangeDefault;
  const range = parseSubnet(text);
  if (range !== null) return range;
  throw new CommandError(
    `NETWORK_RANGE in ${place.files.envFile} is ${text}: expected a subnet such as 10.231.0.0/16.`,
  );
}

/** Everything else is there before the ports change hands, so that the gap is short. */
async function takePorts(setup: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  const { holders } = setup;
  if (setup.place.isNew) await start(setup, env, [machineServices.receive, machineServices.run]);
  const names = holders.join(" and ");
  progress(
    `Recreating ${names} without ports of the machine, which Caddy takes over: a second or two without an answer.`,
  );
  const directory = ["--project-directory", setup.project.root];
  const argv = ["docker", "compose", ...directory, "up", "--detach", "--no-deps", ...holders] as const;
  if ((await runInForeground([...argv], env)) === 0) return;
  throw new CommandError(
    `${names} could not be recreated, for the reason above. The files are written; run this again when the cause is fixed.`,
  );
}

async function start(
  setup: MachineSetup,
  env: NodeJS.ProcessEnv,
  services: readonly string[] = [],
): Promise<void> {
  for (const line of startTexts(setup)) progress(line);
  requireStart(setup.place, await startMachinePart(setup.place.files, env, services));
}

function requireStart({ files }: MachineSetup["place"], ending: CommandEnding): void {
  if (hasSucceeded(ending)) return;
  const reason = ending.lastLines.slice(-5).join("\n    ");
  throw new CommandError(
    `The machine part in ${files.path} did not start. The files are written; run this again when the cause is fixed. Compose says:\n    ${reason}`,
  );
}

/** A user that was added to the machine after `run` was started, and owns the checkout. */
async function isOwnerNew({ project }: MachineSetup, env: NodeJS.ProcessEnv): Promise<boolean> {
  const { uid, gid } = statSync(project.root);
  return readUser(uid, gid).name !== null && !(await isUserKnown(uid, env));
}

async function showOwner({ place }: MachineSetup, env: NodeJS.ProcessEnv): Promise<void> {
  progress("Recreating run, because the owner of the checkout is a new user of this machine.");
  requireStart(place, await recreateRun(place.files, env));
}

function startTexts({ place, changedServices }: MachineSetup): readonly string[] {
  if (place.isNew)
    return [`Starting Caddy and Hotpush in ${place.files.path}. The first time, Docker pulls Caddy.`];
  if (changedServices.length === 0) return [`Starting the machine part in ${place.files.path}.`];
  const { caddy, page, run } = machineServices;
  return [
    ...(changedServices.includes(caddy)
      ? ["Recreating Caddy with the new port: for about a second, no project answers."]
      : []),
    ...(changedServices.includes(page) ? ["Starting the page."] : []),
    ...(changedServices.includes(run) ? ["Recreating run with what this project needs."] : []),
  ];
}

/** Recreating `run` would end the scripts that it runs. */
async function whileQuiet(
  { place }: MachineSetup,
  env: NodeJS.ProcessEnv,
  work: () => Promise<void>,
): Promise<void> {
  const done = new AbortController();
  const request = { reason: "hotpush init", requestedBy: env.SUDO_USER || env.USER };
  try {
    // Not a loop over the events: leaving it would end the hold.
    const events = openHold(place.state.run, request, done.signal);
    while ((await events.next()).value?.event === "waiting") {
      progress("Waiting for the running deployments, because `run` is recreated. No other starts meanwhile.");
    }
  } catch (error) {
    if (!(error instanceof NotRunningError)) throw error;
  }
  try {
    await work();
  } finally {
    done.abort();
  }
}

const acceptedWithinMs = 10_000;
const pauseMs = 200;
const answerTimeoutMs = 2_000;

/** `receive` reads the files of projects every two seconds, and a change counts at the next reading. */
async function untilAccepted({ name, place, project, host, machineFiles }: MachineSetup): Promise<void> {
  const file = machineFiles.find(({ path }) => path === `${place.files.projectsPath}/${name}.env`);
  const request: SendRequest = {
    url: new URL(`http://127.0.0.1:${place.ports.http}/webhook/${name}`),
    secret: secretToSend(parseEnv(file?.text ?? "")),
    directory: project.root,
    branch: project.branch,
    ...{ host, file: null, isDryRun: true, waitMs: acceptedWithinMs },
    event: "ping",
  };
  const deadlineMs = performance.now() + acceptedWithinMs;
  while (performance.now() < deadlineMs) {
    if ((await send(request)).isGood) return;
    await sleep(pauseMs);
  }
}

/** `run` loads a new site into Caddy within two seconds. Until then Caddy answers 404 at any name that it does not know. */
async function untilServed({ place, address }: MachineSetup): Promise<void> {
  const { hostname } = address.payloadUrl;
  const url = new URL(`http://127.0.0.1:${place.ports.http}/webhook`);
  const deadlineMs = performance.now() + acceptedWithinMs;
  while (isIP(hostname.replace(/^\[|\]$/g, "")) === 0 && performance.now() < deadlineMs) {
    const answer = await sendHttp(url, { headers: { host: hostname }, timeoutMs: answerTimeoutMs }).catch(
      () => null,
    );
    if (answer !== null && answer.status !== 404) return;
    await sleep(pauseMs);
  }
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
