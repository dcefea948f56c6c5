import { ProblemError } from "../../problems.ts";
import type { Version, VersionImage } from "../versions.ts";

/** A version cannot be gone back to where the image of one of its services was removed meanwhile. */
export function imageIsGone(service: string, { tag }: VersionImage, { commit }: Version): ProblemError {
  const detail = `The image ${tag} of ${service} is no longer here: deploy the commit ${commit} again instead.`;
  return new ProblemError({ code: "no_previous_version", detail });
}
