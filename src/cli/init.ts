import { type Command, Option } from "commander";
import { gitHostNames, statusHosts } from "#config/git-hosts";
import { parsePageUrl } from "#config/settings";
import { diffTexts } from "#platform/git";
import { canAsk, prompt } from "#platform/terminal";
import { applySetup, type InitOptions, pingPublic, planSetup, type Questions, type Setup } from "#setup/init";
import type { PlannedFile } from "#setup/planned-file";
import { parsePublicUrl } from "#setup/project";
import { type GivenPlace, parsePlace } from "#setup/served";
import { type GitRemote, webhookForm } from "#setup/webhook-form";
import { type CommandContext, isAgreed, newCommand, parser, print, projectOption, say } from "./command.ts";

export const commands = { init: makeInitCommand };

interface Options extends InitOptions {
  readonly yes?: boolean;
  readonly form?: boolean;
}

/** `hotpush init`: sets up the project around the working directory, so that a push deploys it. */
function makeInitCommand({ env, finish }: CommandContext): Command {
  const description =
    "Set up this project. The first run also sets up this server: Caddy and Hotpush for all projects. Each project gets a secret, a deploy.sh, and the values for the webhook's form at your git host. Your own files stay as they are. Run it on the server, in the checkout that is deployed; you can repeat it at any time.";
  return newCommand("init", description, [
    "hotpush init   asks what it cannot detect",
    "hotpush init --yes --url https://shop.example.org",
  ])
    .option(
      "--url <address>",
      "where the git host reaches this project, such as https://shop.example.org",
      urlParser,
    )
    .option(
      "--webhook-path <path>",
      "the path of the payload URL (default: /webhook); for an app that takes deliveries of git hosts at /webhook itself",
      parser(
        (text) => (/^(?:\/[\w~-][\w.~-]*)+$/.test(text) ? text : null),
        "Not a path such as /hooks/hotpush.",
      ),
    )
    .addOption(
      new Option("--host <name>", "the git host (default: by the remote's name)").choices(gitHostNames),
    )
    .option(
      "--at <place>",
      "the address of a service: admin=admin.example.org or admin:3000=admin.example.org; admin=none leaves its port as it is; repeatable",
      collect(parsePlace, "Not of the form admin=admin.example.org or admin=none."),
    )
    .addOption(projectOption(newProject))
    .addOption(pageOption())
    .option("--yes", "non-interactive: take what is proposed, and change files that differ")
    .option("--no-form", "do not print the webhook's form and what comes next")
    .action(async (options: Options) => finish(await init(options, env)));
}

export const urlParser = parser(parsePublicUrl, "Not a site such as https://shop.example.org.");

/** The text of the option that names a new project. */
export const newProject = "the project's name on the server (default: that of the repository)";

export function pageOption(): Option {
  const text = "where people see the deployments, such as https://hotpush.example.org";
  const fault = "Not an https address without a path, such as https://hotpush.example.org.";
  return new Option("--page <address>", text).argParser(parser(parsePageUrl, fault));
}

/** Makes the parser of an option that can be given several times. */
function collect<Value>(read: (text: string) => Value | null, fault: string) {
  const parse = parser(read, fault);
  return (text: string, before: readonly Value[] = []): readonly Value[] => [...before, parse(text)];
}

/** @returns the exit code: 1 if the person did not agree */
async function init(options: Options, env: NodeJS.ProcessEnv): Promise<number> {
  const { yes = false, form = true } = options;
  const setup = await planSetup(options, env, canAsk() && !yes ? personAtTerminal : takeProposals);
  await showPlan(setup, env);
  for (const note of setup.notes) say(`- ${note}`, "  ");
  if (!(await mayChange([...setup.serverFiles, ...setup.checkoutFiles], yes))) return 1;
  await applySetup(setup, env);
  if (!form) return 0;
  showEnd(setup);
  await showIfReached(setup);
  return 0;
}

/** What cannot be detected stays open, and can be given as an option later. */
const takeProposals: Questions = {
  askUrl: async () => null,
  askServed: null,
};

const personAtTerminal: Questions = {
  askUrl: () => {
    print(
      "Where will your git host and visitors reach this server, such as https://shop.example.org?",
      "(Without a name, one project can have the server's address: http://203.0.113.5)",
    );
    return prompt<URL>(
      "Address",
      "",
      (text) => parsePublicUrl(text) ?? explain("That is not an address. Leave out any path."),
    );
  },
  askServed: ({ text, prompt: question, proposal, read }) => {
    say(text);
    return prompt<GivenPlace>(
      question,
      proposal,
      (answer) => read(answer) ?? explain("That is not a host name or none."),
    );
  },
};

/** Says why an answer cannot be used. */
function explain(text: string): null {
  say(text);
  return null;
}

/** What was found, and what happens to each file. */
async function showPlan(setup: Setup, env: NodeJS.ProcessEnv): Promise<void> {
  const { project, name, place, serverFiles, checkoutFiles } = setup;
  const { root, remoteUrl, remote } = project;
  // The URL may have credentials in it; the parsed remote has none.
  const from = remote ? `${remote.hostname}, ${remote.path}` : (remoteUrl ?? "none");
  const state = place.isNew ? ", which is made now: Caddy and Hotpush for all projects" : "";
  const indent = "          ";
  say(`Project   ${name}, in ${root}`, indent);
  say(`Remote    ${from}`, indent);
  say(`Server    ${place.files.path}${state}`, indent);
  print("", `In ${place.files.path}, for all projects of this server:`);
  await printChanges(serverFiles, env);
  print(`In ${root}:`);
  await printChanges(checkoutFiles, env);
}

/**
 * Prints what happens to each file, with the difference for those that are changed, without values that must not be shown: if
 * only those change, no difference is left.
 */
export async function printChanges(files: readonly PlannedFile[], env: NodeJS.ProcessEnv): Promise<void> {
  const width = Math.max(...files.map(({ name }) => name.length));
  for (const { state, name, purpose } of files)
    print(`${(state === "right" ? "is right" : state).padEnd(8)}  ${name.padEnd(width)}  ${purpose}`);
  for (const { state, name, before, text, shown = (all: string) => all } of files) {
    if (state !== "changed") continue;
    const difference = await diffTexts(name, shown(before ?? ""), shown(text), { env });
    print("", difference || `${name}: a secret in it is replaced, or git cannot show the difference.`);
  }
  print("");
}

/** New files need no question, existing ones are changed only if the person agrees. */
async function mayChange(files: readonly PlannedFile[], isYes: boolean): Promise<boolean> {
  const changed = files.filter(({ state }) => state === "changed");
  // Added lines take nothing away.
  const isOnlyAdded = changed.every(({ before, text }) =>
    text.startsWith((before ?? "").replace(/\n*$/, "")),
  );
  if (isYes || isOnlyAdded) return true;
  const names = changed.map(({ name }) => name).join(", ");
  return await isAgreed(`change ${names} as shown`);
}

/** Says what a person still has to do. */
function showEnd(setup: Setup): void {
  const { host, settingsFile, project, payloadUrl, settings } = setup;
  const { remote } = project;
  printWebhookForm({ host, settingsFile, remote, url: payloadUrl, secret: settings.WEBHOOK_SECRET });
  if (statusHosts.some((one) => one === host))
    print("Or let Hotpush fill it in, with a token of yours: hotpush connect");
  // Of a project that was removed, catch-up deploys what it has missed: the queue runs one at a time.
  const start = setup.hasHistory ? "hotpush deploy" : "docker compose up -d";
  print("\nNext:", `  ${start}`, "  hotpush send --dry-run");
  if (setup.page !== null) print("", `The page is at ${setup.page.origin}. To sign in: hotpush open`);
  else if (setup.place.isNew)
    print("", "For a page that shows all this: hotpush init --page https://<another name of this server>");
}

/** Says what is missing for the git host to reach the project. */
async function showIfReached(setup: Setup): Promise<void> {
  const fault = await pingPublic(setup);
  const failed = "A signed ping to the payload URL failed, so your git host may not reach it yet.";
  if (fault === null) say(`\nA signed ping to ${setup.payloadUrl.href} was answered.`);
  else say(`\n${failed} ${fault} To check it again: hotpush doctor public-url`);
}

/** The values of a webhook's form, and where they are from. */
export interface ShownForm extends Pick<Setup, "host" | "settingsFile"> {
  readonly remote: GitRemote | null;
  readonly url: URL;
  readonly secret: string | undefined;
  readonly hasChecks?: boolean;
}

/** The form of the git host's webhook, field by field. Only a person at a terminal sees the secret itself. */
export function printWebhookForm(shownForm: ShownForm): void {
  const { host, remote, url, secret: known, settingsFile, hasChecks = false } = shownForm;
  const shown = process.stdout.isTTY ? known : undefined;
  const secret = shown ?? `the value of WEBHOOK_SECRET in ${settingsFile}`;
  const values = { payloadUrl: url.href, secret };
  const form = webhookForm(host ?? "github", host === null ? null : remote, values);
  print(`\nThe webhook at ${host === null ? "your git host (name it with --host)" : form.host}:`);
  print(host === null ? "  its repository's settings, Webhooks" : `  ${form.address ?? form.way}`);
  const width = Math.max(...form.fields.map(([label]) => label.length));
  for (const [label, value] of form.fields) {
    const line = `  ${label.padEnd(width)}  ${value}`;
    // A value that would wrap has a line of its own, so that it can be copied.
    print(line.length <= 80 ? line : `  ${label}\n    ${value}`);
  }
  const own = form.fields.find(([, value]) => value === secret)?.[0];
  if (form.makesSecret)
    say(`  If ${form.host} makes the ${own} itself, write that to ${settingsFile} as WEBHOOK_SECRET.`, "  ");
  if (hasChecks && form.checks) say(`  For DEPLOY_AFTER, choose these events as well: ${form.checks}.`, "  ");
  if (host !== null) say(`  ${form.afterwards}`, "  ");
}
