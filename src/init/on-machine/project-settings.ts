import { randomBytes } from "node:crypto";
import { secretFault } from "../../config/secret.ts";
import type { Environment } from "../../config/settings.ts";
import { type Setting, withoutOtherValues, withSettings } from "../dotenv-file.ts";
import { type GitHost, payloadName } from "../git-host.ts";
import type { Owner, WantedFile } from "../planned-file.ts";
import type { SetupProject } from "../project.ts";

export interface ProjectFileOptions {
  /** On the machine part. */
  readonly name: string;
  readonly project: SetupProject;
  /** The present variables of the file. */
  readonly known: Environment;
  readonly payloadUrl: URL;
  readonly host: GitHost | null;
  /** Choices of the command line, which replace what is there. */
  readonly given: { readonly url: URL | null; readonly host: GitHost | null };
  readonly owner: Owner;
}

/** The file of a project on the machine part: its settings and its secret. Other lines in it stay. */
export function projectFile(options: ProjectFileOptions): WantedFile {
  const settings = projectSettings(options);
  return {
    ...{ name: `projects/${options.name}.env`, mode: 0o640, owner: options.owner },
    purpose: "the project, and its secret",
    make: (before) => withSettings(before ?? "", settings),
    shown: (text) => withoutOtherValues(text, settings),
  };
}

function projectSettings({
  project,
  known,
  payloadUrl,
  host,
  given,
}: ProjectFileOptions): readonly Setting[] {
  const setting = (name: string, value: string | null, isOpen: boolean) =>
    value === null ? [] : [{ name, value, isOpen }];
  return [
    ...secretSetting(known, host),
    ...setting("REPO_PATH", project.root, false),
    ...setting("REPOSITORY", repositoryName(project, host), true),
    ...setting("BRANCH", project.branch, true),
    ...setting("WEBHOOK_URL", payloadUrl.href, given.url === null),
    ...setting("HOTPUSH_GIT_HOST", host, given.host === null),
  ];
}

/** The setting of the secret. A valid one stays, and if a file holds it, there is none. */
function secretSetting(
  { WEBHOOK_SECRET, WEBHOOK_SECRET_FILE }: Environment,
  host: GitHost | null,
): readonly Setting[] {
  if (WEBHOOK_SECRET_FILE) return [];
  const isGood = WEBHOOK_SECRET !== undefined && secretFault("WEBHOOK_SECRET", WEBHOOK_SECRET) === null;
  return [{ name: "WEBHOOK_SECRET", value: isGood ? WEBHOOK_SECRET : makeSecretText(host), isOpen: false }];
}

/** 32 random bytes; for GitLab in the form of Standard Webhooks, which a signing token there must have. */
function makeSecretText(host: GitHost | null): string {
  const bytes = randomBytes(32);
  return host === "gitlab" ? `whsec_${bytes.toString("base64")}` : bytes.toString("hex");
}

/** `owner/name` as in the host's payload, so that no other repository with the secret deploys this one. */
function repositoryName({ remote }: SetupProject, host: GitHost | null): string | null {
  const name = payloadName(remote?.path ?? "", host);
  return /^[\w.~-]+(\/[\w.~-]+)+$/.test(name) ? name : null;
}
