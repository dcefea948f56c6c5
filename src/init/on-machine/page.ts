import { machineServices, pageAlias } from "../../config/machine-part.ts";
import type { MachinePlace } from "../../setup/place.ts";
import { hasService, self } from "../../setup/server-files.ts";
import type { Setting } from "../dotenv-file.ts";
import type { WantedFile } from "../planned-file.ts";
import { SetupError } from "../setup-error.ts";

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
 * @throws SetupError if it was made by a version that had no page, or Caddy does not have the port of `url`
 */
export function planPage(url: URL, place: MachinePlace, composeText: string | null): PagePlan {
  refuseOtherPort(url, place);
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

function refuseOtherPort(url: URL, place: MachinePlace): void {
  const { protocol, hostname, port, origin } = url;
  const hasTls = protocol === "https:";
  // The port of a proxy in front of Caddy is not known here.
  if (hasTls && !hasOwnCertificate(url, place)) return;
  const [usual, own] = hasTls ? [443, place.ports.https] : [80, place.ports.http];
  if (Number(port || usual) === own) return;
  const right = `${protocol}//${hostname}${own === usual ? "" : `:${own}`}`;
  throw new SetupError(
    `Nothing would answer at ${origin}, because the page is at Caddy's port ${own}. Run: hotpush init --page ${right}`,
  );
}

/** Whether Caddy gets a certificate for it: if it has the usual ports. Else a proxy in front of it has one. */
export function hasOwnCertificate({ protocol }: URL, { ports }: Pick<MachinePlace, "ports">): boolean {
  return protocol === "https:" && ports.http === 80 && ports.https === 443;
}

function siteAddress(url: URL, place: MachinePlace): string {
  return `${hasOwnCertificate(url, place) ? "" : "http://"}${url.hostname}`;
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
