import { splitReference } from "../../platform/docker/image.ts";

/** Whether an image's name says from which registry it comes: `ghcr.io/team/app`, `localhost:5000/app`. */
export function namesRegistry(image: string): boolean {
  const { repository } = splitReference(image);
  const [first, ...rest] = repository.split("/");
  return rest.length > 0 && first !== undefined && (/[.:]/.test(first) || first === "localhost");
}
