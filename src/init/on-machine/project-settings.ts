import type { Environment } from "../../config/settings.ts";
import { type Setting, withoutOtherValues, withSettings } from "../dotenv-file.ts";
import type { GitHost } from "../git-host.ts";
import { repositoryName, secretSetting } from "../plan-files.ts";
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
