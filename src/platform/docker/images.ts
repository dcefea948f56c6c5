import { type Engine, getJson, nullIfMissing } from "./engine.ts";

export interface Image {
  readonly id: string;
  readonly tags: readonly string[];
}

/** The image that `reference` (a name, a tag or an id) stands for, or null if it is not on this machine. */
export async function inspectImage(engine: Engine, reference: string): Promise<Image | null> {
  const path = `/images/${encodeURIComponent(reference)}/json`;
  const found = await nullIfMissing(getJson<Inspected>(engine, path));
  if (found === null) return null;
  return { id: found.Id, tags: found.RepoTags ?? [] };
}

interface Inspected {
  readonly Id: string;
  readonly RepoTags: readonly string[] | null;
}

/** Gives the image `id` the additional name `reference`, taking it from any other image. */
export async function tagImage(engine: Engine, id: string, reference: string): Promise<void> {
  const { repository, tag } = splitReference(reference);
  const query = new URLSearchParams({ repo: repository, tag });
  await engine.post(`/images/${encodeURIComponent(id)}/tag?${query}`);
}

/** Splits `registry:5000/team/app:1.2@sha256:…`. Without a tag it is `latest`, as in Docker. */
export function splitReference(reference: string): { readonly repository: string; readonly tag: string } {
  const name = reference.replace(/@.*$/, "");
  const colon = name.lastIndexOf(":");
  if (colon <= name.lastIndexOf("/")) return { repository: name, tag: "latest" };
  return { repository: name.slice(0, colon), tag: name.slice(colon + 1) };
}

/**
 * Whether a roll-out gave the image this name: its tag is twelve digits of the commit, and a number if that commit was
 * built more than once.
 */
export function isNamedByCommit(reference: string): boolean {
  return /^[0-9a-f]{12}(?:-\d+)?$/.test(splitReference(reference).tag);
}

/**
 * Names the image `id` after the commit, beside `image` (`shop-app` → `shop-app:9f2c1ab04e77`). So the next build
 * does not leave it nameless, and a roll back finds it. If another image has that name, a number is added.
 *
 * @returns the new name
 */
export async function tagByCommit(
  engine: Engine,
  image: string,
  id: string,
  commit: string,
): Promise<string> {
  const { repository } = splitReference(image);
  for (let attempt = 1; ; attempt += 1) {
    const reference = `${repository}:${commit.slice(0, 12)}${attempt === 1 ? "" : `-${attempt}`}`;
    const holder = await inspectImage(engine, reference);
    if (holder?.id === id) return reference;
    if (holder === null) {
      await tagImage(engine, id, reference);
      return reference;
    }
  }
}

/** Whether an image's name contains its registry: `ghcr.io/team/app`, `localhost:5000/app`. */
export function namesRegistry(image: string): boolean {
  const { repository } = splitReference(image);
  const [first, ...rest] = repository.split("/");
  return rest.length > 0 && first !== undefined && (/[.:]/.test(first) || first === "localhost");
}
