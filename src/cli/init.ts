import { type Command, Option } from "commander";
import { type GitHost, gitHosts } from "../init/git-host.ts";
import { buildOwnImage, hasOwnImage, ownImage } from "../init/own-image.ts";
import { planSetup, type Questions, type Setup } from "../init/plan-setup.ts";
import { writePlanned } from "../init/planned-file.ts";
import { parsePublicUrl } from "../init/webhook-address.ts";
import { type CommandContext, newCommand, parser, print, refuse } from "./command.ts";
import { canAsk, confirm, personAtTerminal, takeDefaults } from "./init-questions.ts";
import { printChanges, printNextSteps, printNotes, printProject, printWebhookForm } from "./init-report.ts";

interface InitOptions {
  readonly url?: URL;
  readonly host?: GitHost;
  readonly service?: string;
  readonly yes?: boolean;
  readonly check?: boolean;
}

/** `hotpush init`: sets up the project around the working directory, so that a push deploys it. */
export function makeInitCommand({ env, finish }: CommandContext): Command {
  const description =
    "Set up this project: a secret in .env, a deploy.sh, Hotpush and its proxy beside your compose file, and the values for the webhook's form at your git host. Your own files stay as they are. Run it on the server, in the checkout that is deployed; you can repeat it at any time.";
  return newCommand("init", description, [
    "hotpush init                                  asks what it cannot detect",
    "hotpush init --yes --url https://shop.example.org",
    "hotpush init --check                          show what would change",
  ])
    .option(
      "--url <address>",
      "where the git host reaches this server, such as https://shop.example.org",
      parser(parsePublicUrl, "Not an address such as https://shop.example.org."),
    )
    .addOption(new Option("--host <name>", "the git host (default: by the remote's name)").choices(gitHosts))
    .option("--service <name>", "the service that is the app, if several publish a port")
    .option("--yes", "ask nothing, and change what is not right without asking")
    .option("--check", "write nothing; show what would change, and exit with 1 if something would")
    .action(async (options: InitOptions) => finish(await init(options, env)));
}

async function init(options: InitOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const { url = null, host = null, service = null, yes = false, check = false } = options;
  const questions: Questions = canAsk() && !yes && !check ? personAtTerminal : takeDefaults;
  const setup = await planSetup(process.cwd(), env, { url, host, service }, questions);
  printProject(setup);
  await printChanges(setup.files, env);
  const isImageThere = !needsImage(setup) || (await hasOwnImage(env));
  if (check) return reportCheck(setup, isImageThere);
  if (!(await mayChange(setup, yes))) return 1;
  for (const file of setup.files) writePlanned(file);
  await printNotes(setup);
  if (!isImageThere) {
    process.stderr.write(`Building the image ${ownImage}; the first time takes a minute or two.\n`);
    await buildOwnImage(env);
  }
  printWebhookForm(setup);
  await printNextSteps(setup, env);
  return 0;
}

/** If `.env` names an image, the person chose it. */
function needsImage({ proxy, project }: Setup): boolean {
  return proxy !== null && !project.env.HOTPUSH_IMAGE;
}

function reportCheck({ files }: Setup, isImageThere: boolean): number {
  if (!isImageThere) print(`The image ${ownImage} would be built.`);
  return isImageThere && files.every(({ state }) => state === "right") ? 0 : 1;
}

/** New files need no question; existing ones are changed only if the person agrees. */
async function mayChange({ files }: Setup, isAgreed: boolean): Promise<boolean> {
  const changed = files.filter(({ state }) => state === "changed");
  // Added lines take nothing away.
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
