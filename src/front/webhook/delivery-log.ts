import type { SecretSlot } from "#config/secret";
import type { Push, PushRecord, StoredPush, Would } from "#deployments/push";
import type { Log } from "#log";
import type { Refusal } from "#platform/http-server/answer";
import type { Crowding } from "#platform/http-server/connections";
import { createLogThrottle } from "#platform/log-throttle";
import type { HttpProblemCode } from "#problems";
import type { IgnoreReason } from "./select-push.ts";

/** Where a delivery comes from. Nothing of it is signed. */
export interface Sender {
  /** The name of the git host. */
  readonly host: string;
  /** The host's id of the delivery; null if there is none, or none that is harmless to print. */
  readonly delivery: string | null;
  /** The address of the client. */
  readonly from: string | null;
  /** The project that it is for, if there are several. */
  readonly project?: string;
}

/** Logs the result of each delivery, with the address of its client; never a body, a header or a secret. */
export type DeliveryLog = ReturnType<typeof createDeliveryLog>;

/** Refusals of one kind that are logged one by one in a minute: strangers can make as many as they like. */
const refusalsPerMinute = 10;
/** Deliveries of one kind that change nothing and are logged one by one in a second: no git host sends more. */
const ignoredPerSecond = 100;

const recordedTexts = { accepted: "recorded", duplicate: "recorded before", stored: "stored" } as const;

export function createDeliveryLog(log: Log) {
  const mayLogRefusal = createLogThrottle<HttpProblemCode>(refusalsPerMinute, 60_000, (code, count) => {
    const text = `${count} more deliveries were refused (${code})`;
    log.warn({ event: "delivery.refused_more", code, count }, text);
  });
  const mayLogIgnored = createLogThrottle<IgnoreReason | "pong">(ignoredPerSecond, 1_000, (reason, count) => {
    const text = `${count} more deliveries were ignored (${reason})`;
    log.info({ event: "delivery.ignored_more", reason, count }, text);
  });

  return {
    refused({ code, logReason: reason }: Refusal, { from, project }: Pick<Sender, "from" | "project">): void {
      if (!mayLogRefusal(code)) return;
      // The address comes before the reason, at a fixed place: programs such as fail2ban look for it there.
      log.warn({ event: "delivery.refused", code, from, project, reason }, `A delivery was refused: ${code}`);
    },
    pong(sender: Sender): void {
      if (!mayLogIgnored("pong")) return;
      log.info({ event: "delivery.pong", ...sender }, `A ping of ${sender.host} was answered`);
    },
    ignored(sender: Sender, reason: IgnoreReason): void {
      if (!mayLogIgnored(reason)) return;
      const level = reason === "branch_deleted" ? "warn" : "info";
      log[level]({ event: "delivery.ignored", ...sender, reason }, "A delivery was ignored");
    },
    dryRun({ host, from, project }: Sender, would: Would): void {
      const fields = { event: "delivery.dry_run", host, would: Object.keys(would)[0], from, project };
      log.info(fields, "A dry run was answered; nothing was recorded");
    },
    recorded(
      push: Push,
      recorded: PushRecord | StoredPush,
      slot: SecretSlot,
      { from, project }: Sender,
    ): void {
      const { host, ref, commit, deliveryId: delivery, repository, pusher } = push;
      const place =
        recorded.kind === "stored"
          ? { stored: recorded.delivery }
          : { deployment: recorded.deployment.id, state: recorded.deployment.state };
      const fields = { ...place, host, ref, commit, delivery, repository, pusher, from, project };
      const text = `A push to ${ref} was ${recordedTexts[recorded.kind]}`;
      log.info({ event: `delivery.${recorded.kind}`, ...fields }, text);
      if (slot === "current") return;
      const advice = "A delivery was signed with WEBHOOK_SECRET_PREVIOUS: set the new secret at the git host";
      log.warn({ event: "secret.previous_used", host, delivery, project }, advice);
    },
    notRecorded({ ref, commit }: Push, error: unknown, { delivery, from, project }: Sender): void {
      const fields = { event: "delivery.not_recorded", ref, commit, delivery, from, project, err: error };
      log.error(fields, "A push was not stored");
    },
    crowded({ limit, closed, refused }: Crowding): void {
      const text = `Connections are near their limit of ${limit}: ${closed} idle ones were closed, ${refused} new ones refused`;
      log.warn({ event: "connections.crowded", limit, closed, refused }, text);
    },
  };
}
