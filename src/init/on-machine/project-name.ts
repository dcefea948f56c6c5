import { reservedNames } from "../../config/machine-part.ts";
import { isProjectName } from "../../config/project-files.ts";
import { SetupError } from "../setup-error.ts";

export interface NameOptions {
  /** `owner/name` of the remote, or the path of the checkout if there is none. */
  readonly path: string;
  /** The name that a person gave. */
  readonly given: string | null;
  /** The name that this checkout has already. */
  readonly known: string | null;
  /** The checkouts of the other projects, by name. */
  readonly others: ReadonlyMap<string, string>;
}

/**
 * Chooses the project's name on the machine part: the repository's, or `owner-name` if another project has that.
 *
 * @throws SetupError if the name cannot be had
 */
export function chooseProjectName({ path, given, known, others }: NameOptions): string {
  if (given !== null) refuseName(given, known, others);
  const parts = path.split("/").filter(Boolean);
  const derived = [asName(parts.at(-1) ?? ""), asName(parts.slice(-2).join("-"))];
  const name = given ?? known ?? derived.find((one) => isFree(one, others));
  if (name !== undefined) return name;
  throw new SetupError(
    `No name for this project is left: ${derived.join(" and ")} cannot be used or are taken. Choose one: hotpush init --project <name>`,
  );
}

function refuseName(name: string, known: string | null, others: NameOptions["others"]): void {
  if (known !== null && name !== known) {
    throw new SetupError(
      `This checkout is the project ${known} already. To rename it, remove it first: hotpush remove ${known}`,
    );
  }
  const other = others.get(name);
  if (other !== undefined) {
    throw new SetupError(
      `${name} is the project in ${other}. Choose another name: hotpush init --project <name>`,
    );
  }
  if (reservedNames.includes(name)) {
    throw new SetupError(
      `${name} is a name of the machine part. Choose another one: hotpush init --project <name>`,
    );
  }
}

/** The nearest name that a project may have. */
function asName(text: string): string {
  return text
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, 39);
}

function isFree(name: string, others: NameOptions["others"]): boolean {
  return isProjectName(name) && !reservedNames.includes(name) && !others.has(name);
}
