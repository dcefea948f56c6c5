import type { WaitingReport } from "../deployments/outbox.ts";
import { sendCommitStatus } from "./commit-status.ts";
import type { Send } from "./deliver.ts";
import { sendDeployment } from "./environment.ts";
import { isFailure, isRecovery, type Message } from "./message.ts";
import { delivered } from "./outcome.ts";
import { commitStatusName, environmentName, type SubscriberSettings } from "./subscribers.ts";
import { sendToTarget } from "./targets/send.ts";

export interface SenderOptions {
  readonly settings: SubscriberSettings;
  /** Adds what is known of a report beside its record. */
  readonly complete: (waiting: WaitingReport) => Message;
  readonly repeats: Repeats;
}

/** Finds how a subscriber of a project is sent reports; null: its settings do not name it. */
export function findSender(options: SenderOptions, name: string): Send | null {
  const { complete, settings } = options;
  const { commitStatus, environment } = settings;
  if (name !== commitStatusName && name !== environmentName) return findNotifier(options, name);
  if (commitStatus === null) return null;
  if (name === commitStatusName)
    return (waiting, signal) => sendCommitStatus(commitStatus, complete(waiting), signal);
  if (environment === null) return null;
  return (waiting, signal) => sendDeployment(commitStatus, environment, complete(waiting), signal);
}

function findNotifier({ settings: { notify }, complete, repeats }: SenderOptions, name: string): Send | null {
  const target = notify.targets.find((one) => one.name === name);
  if (target === undefined) return null;
  return async (waiting, signal) => {
    const message = complete(waiting);
    if (notify.on === "all") return await sendToTarget(target, message, signal);
    const isNews = isFailure(message) ? !repeats.isRepeated(waiting) : isRecovery(message);
    const outcome = isNews ? await sendToTarget(target, message, signal) : delivered;
    if (outcome.kind === "delivered" && isNews) repeats.note(waiting);
    return outcome;
  };
}

/** Which failures were sent lately. After a restart that is forgotten: then one is sent again. */
export interface Repeats {
  readonly isRepeated: (waiting: WaitingReport) => boolean;
  readonly note: (waiting: WaitingReport) => void;
}

/** The same failure is sent again after this time at the earliest. */
const quietMs = 3_600_000;

export function createRepeats(): Repeats {
  const sent = new Map<string, { readonly reason: string; readonly atMs: number }>();
  const keyOf = ({ project, subscriber }: WaitingReport) => `${project} ${subscriber}`;
  const reasonOf = ({ report: { deployment } }: WaitingReport) =>
    deployment.problem ? `${deployment.problem.code} ${deployment.problem.detail}` : deployment.state;
  return {
    isRepeated(waiting) {
      const last = sent.get(keyOf(waiting));
      return last?.reason === reasonOf(waiting) && performance.now() - last.atMs < quietMs;
    },
    note: (waiting) => void sent.set(keyOf(waiting), { reason: reasonOf(waiting), atMs: performance.now() }),
  };
}
