import { machineServices, pageAlias } from "../../config/machine-part.ts";
import { hasService } from "../../machine-part/compose-file.ts";
import type { Setting } from "../dotenv-file.ts";
import type { WantedFile } from "../planned-file.ts";
import { SetupError } from "../setup-error.ts";
import { self } from "./machine-files.ts";
import type { MachinePlace } from "./machine-place.ts";

/** The page of the machine part as it will be. */
export interface PagePlan {
  readonly url: URL;
  readonly settings: readonly Setting[];
  readonly site: WantedFile;
}

/**
 * Plans the page at `url`.
 *
 * @param composeText compose.yaml as it is; null if it is made now
 * @throws SetupError if it was made by a version that had no page
 */
export function planPage(url: URL, place: MachinePlace, composeText: string | null): PagePlan {
  if (composeText !== null && !hasService(composeText, machineServices.page))
    throw new SetupError(`${place.files.composeFile} has no page yet. Run: hotpush upgrade`);
  const { COMPOSE_PROFILES = "" } = place.env;
  const profiles = [...new Set([...COMPOSE_PROFILES.split(",").filter(Boolean), machineServices.page])];
  return {
    url,
    settings: [
      { name: "PAGE_URL", value: url.origin, isOpen: false },
      { name: "COMPOSE_PROFILES", value: profiles.join(","), isOpen: false },
    ],
    site: {
      ...{ name: "sites/page.caddy", mode: 0o644, owner: self(), purpose: "the address of the page" },
      make: (before) => (before?.includes(`\n${siteAddress(url, place)} {`) ? before : pageSite(url, place)),
    },
  };
}

/** Caddy gets a certificate if it has the usual ports; else a proxy in front of it has one. */
function siteAddress({ protocol, hostname }: URL, { ports }: MachinePlace): string {
  const hasCertificate = protocol === "https:" && ports.http === 80 && ports.https === 443;
  return `${hasCertificate ? "" : "http://"}${hostname}`;
}

function pageSite(url: URL, place: MachinePlace): string {
  return `# The page, at a host name of its own: below the address of an app, that app could act for its visitors.

${siteAddress(url, place)} {
	@whole not path */events
	encode @whole zstd gzip
	reverse_proxy ${pageAlias}:9001 {
		# Live logs: each line is passed on at once.
		flush_interval -1
	}
}
`;
}
