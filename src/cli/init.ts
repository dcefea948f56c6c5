import { join } from "node:path";
import { type Command, Option } from "commander";
import { isProjectName } from "../config/project-files.ts";
import { parsePageUrl } from "../config/settings.ts";
import { readServices } from "../init/compose-services.ts";
import { gitHosts } from "../init/git-host.ts";
import { settingsOnMachine } from "../init/on-machine/plan-on-machine.ts";
import { ownRoot } from "../init/own-image.ts";
import { findProject } from "../init/project.ts";
import { SetupError } from "../init/setup-error.ts";
import { parsePlace } from "../init/upstreams/choices.ts";
import { findOwnProxy } from "../init/upstreams/own-proxy.ts";
import { parsePublicUrl } from "../init/webhook-address.ts";
import { type CommandContext, newCommand, parser } from "./command.ts";
import { initOnMachine } from "./init-on-machine.ts";
import type { InitOptions } from "./init-options.ts";

/** `hotpush init`: sets up the project around the working directory, so that a push deploys it. */
export function makeInitCommand({ env, finish }: CommandContext): Command {
  const description =
    "Set up this project, and at the first time this machine: Caddy and Hotpush for all projects, a secret, a deploy.sh, and the values for the webhook's form at your git host. Your own files stay as they are. Run it on the server, in the checkout that is deployed; you can repeat it at any time.";
  return newCommand("init", description, [
    "hotpush init                         asks what it cannot detect",
    "hotpush init --yes --url https://shop.example.org",
    "hotpush init --check                 shows what would change",
  ])
    .option(
      "--url <address>",
      "where the git host reaches this project, such as https://shop.example.org",
      parser(parsePublicUrl, "Not an address such as https://shop.example.org."),
    )
    .addOption(new Option("--host <name>", "the git host (default: by the remote's name)").choices(gitHosts))
    .option("--service <name>", "the service at that address, if several have a page")
    .option(
      "--at <place>",
      "the address of another service: admin=admin.example.org, admin=:8081, or admin=none to leave its port; repeatable",
      collect(parsePlace, "Not of the form admin=admin.example.org, admin:3000=:8081 or admin=none."),
    )
    .option(
      "--project <name>",
      "the project's name on this machine (default: that of the repository)",
      parser((text) => (isProjectName(text) ? text : null), "Not 1 to 39 of a-z, 0-9 and hyphens."),
    )
    .option(
      "--page <address>",
      "where people see the deployments, such as https://hotpush.example.org",
      parser(parsePageUrl, "Not an https address without a path, such as https://hotpush.example.org."),
    )
    .option("--yes", "ask nothing, and change what is not right without asking")
    .option("--check", "write nothing; show what would change, and exit with 1 if something would")
    .action(async (options: InitOptions) => finish(await init(options, env)));
}

/** Makes the parser of an option that can be given several times. */
function collect<Value>(read: (text: string) => Value | null, fault: string) {
  const parse = parser(read, fault);
  return (text: string, before: readonly Value[] = []): readonly Value[] => [...before, parse(text)];
}

async function init(options: InitOptions, env: NodeJS.ProcessEnv): Promise<number> {
  const project = await findProject(process.cwd(), (root) => settingsOnMachine(root, env));
  const services = await readServices(project, env);
  const ownProxy = findOwnProxy(
    services,
    (options.at ?? []).map(({ service }) => service),
  );
  if (ownProxy === null) return await initOnMachine(project, services, options, env);
  throw new SetupError(
    `${ownProxy} has the certificates of this project, and with them the ports that Caddy of this server needs. Either remove ${ownProxy} from the compose file and run this again; Caddy gets the certificates. Or keep it, and copy the service hotpush of ${join(ownRoot, "examples/compose/compose.yaml")} into your compose file.`,
  );
}
