import type { MachinePart } from "../../setup/server.ts";
import { machineCaddyfile, renewedComposeFile } from "../../setup/server-files.ts";
import { withSettings } from "../dotenv-file.ts";
import { ownImage } from "../own-image.ts";
import { type PlannedFile, planFile, type WantedFile } from "../planned-file.ts";

/** The files of the machine part as this version of Hotpush writes them, and the image that its services run. */
export interface PlannedUpgrade {
  readonly files: readonly PlannedFile[];
  /** HOTPUSH_IMAGE. A name that `init` did not choose stays: that image is a person's own. */
  readonly image: string;
  readonly composeText: string;
}

/**
 * Plans an upgrade to the version of this Hotpush. Nothing is written.
 *
 * @throws SetupError if a file cannot be read, or is not there
 */
export function planUpgrade({ files, env }: MachinePart): PlannedUpgrade {
  const image = isOwnImage(env.HOTPUSH_IMAGE) ? ownImage : (env.HOTPUSH_IMAGE ?? ownImage);
  const wanted: readonly WantedFile[] = [
    {
      ...{ name: "compose.yaml", mode: null, purpose: "Caddy, and Hotpush in containers" },
      make: (before) => renewedComposeFile(before ?? ""),
    },
    {
      ...{ name: "Caddyfile", mode: null, purpose: "what the sites of all projects import" },
      make: () => machineCaddyfile(),
    },
    {
      ...{ name: ".env", mode: null, purpose: "the values of this machine" },
      make: (before) => withSettings(before ?? "", [{ name: "HOTPUSH_IMAGE", value: image, isOpen: false }]),
    },
  ];
  const planned = wanted.map((file) => planFile(files.path, file));
  return { files: planned, image, composeText: planned[0]?.text ?? "" };
}

/** Whether `init` has built an image of this name. */
export function isOwnImage(image: string | undefined): boolean {
  return /^hotpush:[^/]+$/.test(image ?? "");
}
