import { type Command, InvalidArgumentError, Option } from "commander";
import { type GitHost, gitHosts } from "../init/git-host.ts";
import { buildOwnImage, hasOwnImage, ownImage } from "../init/own-image.ts";
import { planSetup, type Questions, type Setup } from "../init/plan-setup.ts";
import { writePlanned } from "../init/planned-file.ts";
import { SetupError } from "../init/setup-error.ts";
import { parsePublicUrl } from "../init/webhook-address.ts";
import { ProblemError } from "../problems.ts";
import { canAsk, confirm, LeftError } from "./ask.ts";
import { newCommand, refuse, type Surroundings } from "./command.ts";
import { tellForm, tellNext } from "./init-next.ts";
import { personAtTerminal, takeDefaults } from "./init-questions.ts";
import { tellChanges, tellNotes, tellProject } from "./init-report.ts";

interface Options {
  readonly url?: URL;
  readonly host?: GitHost;
  readonly service?: string;
  readonly yes?: boolean;
  readonly check?: boolean;
}

/** `hotpush init`: sets the project around the working directory up, so that a push deploys it. */
export function makeInitCommand({ env, finish }: Surroundings): Command {
  const summary =
    "Sets up this project: a secret in .env, a deploy.sh, Hotpush and its proxy beside your compose file, and what to fill into the webhook's form at your git host. Your own files stay as they are. To be run on the server, in the checkout that is deployed; again at any time.";
  return newCommand("init", summary, [
    "hotpush init                                  asks what it cannot find out",
    "hotpush init --yes --url https://shop.example.org",
    "hotpush init --check                          is anything not as it should be?",
  ])
    .option(
      "--url <address>",
      "where the git host reaches this server, such as https://shop.example.org",
      address,
    )
    .addOption(
      new Option("--host <name>", "the git host (default: as the remote's name tells)").choices(gitHosts),
    )
    .option("--service <name>", "the service that is the app, where several publish a port")
    .option("--yes", "asks nothing, and changes what is not right without asking")
    .option("--check", "writes nothing; shows what would change, and ends with 1 where something would")
    .action(async (options: Options) => finish(await runInit(options, env)));
}

function address(text: string): URL {
  const url = parsePublicUrl(text);
  if (url !== null) return url;
  throw new InvalidArgumentError("Not an address such as https://shop.example.org.");
}

async function runInit(options: Options, env: NodeJS.ProcessEnv): Promise<number> {
  try {
    return await init(options, env);
  } catch (error) {
    if (error instanceof LeftError) return refuse("Nothing was written.");
    if (error instanceof SetupError) return refuse(error.message);
    if (error instanceof ProblemError) return refuse(error.problem.detail);
    throw error;
  }
}

async function init(options: Options, env: NodeJS.ProcessEnv): Promise<number> {
  const { url = null, host = null, service = null, yes = false, check = false } = options;
  const questions: Questions = canAsk() && !yes && !check ? personAtTerminal : takeDefaults;
  const setup = await planSetup(process.cwd(), env, { url, host, service }, questions);
  tellProject(setup);
  await tellChanges(setup.files, env);
  const isImageThere = !needsImage(setup) || (await hasOwnImage(env));
  if (check) return reportCheck(setup, isImageThere);
  if (!(await mayChange(setup, yes))) return 1;
  for (const file of setup.files) writePlanned(file);
  await tellNotes(setup);
  if (!isImageThere) {
    process.stderr.write(`Building the image ${ownImage}; the first time takes a minute or two.\n`);
    await buildOwnImage(env);
  }
  tellForm(setup);
  return await tellNext(setup, env);
}

/** Where `.env` names an image, it is a person's. */
function needsImage({ proxy, project }: Setup): boolean {
  return proxy !== null && !project.env.HOTPUSH_IMAGE;
}

function reportCheck({ files }: Setup, isImageThere: boolean): number {
  if (!isImageThere) process.stdout.write(`The image ${ownImage} would be built.\n`);
  return isImageThere && files.every(({ state }) => state === "right") ? 0 : 1;
}

/** New files need no question; what is there is changed only when a person agrees. */
async function mayChange({ files }: Setup, isAgreed: boolean): Promise<boolean> {
  const changed = files.filter(({ state }) => state === "changed");
  // Lines that are only added take nothing away from anybody.
  if (isAgreed || changed.every(({ before, text }) => isOnlyAdded(before ?? "", text))) return true;
  const names = changed.map(({ name }) => name).join(", ");
  if (!canAsk()) {
    refuse(`${names} would be changed as shown. Nothing was written; to agree: hotpush init --yes`);
    return false;
  }
  if (await confirm(`Change ${names} as shown?`)) return true;
  refuse("Nothing was written.");
  return false;
}

function isOnlyAdded(before: string, text: string): boolean {
  return text.startsWith(before.replace(/\n*$/, ""));
}
