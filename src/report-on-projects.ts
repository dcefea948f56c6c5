import { completeReport } from "./feedback/complete.ts";
import type { DeliveryOptions } from "./feedback/deliver.ts";
import { createRepeats, findSender } from "./feedback/senders.ts";
import type { ProjectServices } from "./project-services.ts";

/** Makes what finds the targets of a report: in the settings of its project, as they are now. */
export function createFindSend(services: ProjectServices, pageUrl: URL | null): DeliveryOptions["findSend"] {
  const repeats = createRepeats();
  return ({ project, subscriber }) => {
    const service = services.find(project);
    if (service === null) return null;
    const { store, statePath } = service;
    const { settings } = service.parts();
    const complete = completeReport.bind(null, { store, statePath, pageUrl });
    return findSender({ settings, complete, repeats }, subscriber);
  };
}
