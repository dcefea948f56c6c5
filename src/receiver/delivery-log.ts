import type { IncomingMessage } from "node:http";
import type { SecretSlot } from "../config/secret.ts";
import type { Log } from "../log.ts";
import type { HttpProblemCode } from "../problems.ts";
import type { ClientAddress } from "./client-address.ts";
import type { Would } from "./dry-run.ts";
import type { Host } from "./hosts/host.ts";
import type { Crowding } from "./make-room.ts";
import type { Push, PushRecord } from "./push.ts";
import type { IgnoreReason } from "./select-push.ts";
import { createToldSingly } from "./told-singly.ts";

/** Says of each delivery what became of it, and the address of its client; never a body, a header or a secret. */
export interface DeliveryLog {
  readonly refused: (code: HttpProblemCode, request: IncomingMessage, reason?: string) => void;
  readonly pong: (host: Host, request: IncomingMessage) => void;
  readonly ignored: (host: Host, reason: IgnoreReason, request: IncomingMessage) => void;
  readonly dryRun: (host: Host, would: Would, from: string | null) => void;
  readonly recorded: (push: Push, slot: SecretSlot, recorded: PushRecord, from: string | null) => void;
  readonly notRecorded: (push: Push, error: unknown, from: string | null) => void;
  /** Connections are near their limit. */
  readonly crowded: (crowding: Crowding) => void;
  readonly failed: (error: unknown, request: IncomingMessage) => void;
  /** For lines that are written after the connection may have been closed. */
  readonly clientOf: ClientAddress;
}

/** Refusals of one kind that are told each for itself in a minute: strangers can make as many as they like. */
const refusalsPerMinute = 10;
/** Deliveries of one kind that change nothing and are told each for itself in a second: more is no git host's doing. */
const ignoredPerSecond = 100;

export function createDeliveryLog(log: Log, clientOf: ClientAddress): DeliveryLog {
  const isRefusalToldSingly = createToldSingly<HttpProblemCode>({
    most: refusalsPerMinute,
    stretchMs: 60_000,
    tellMore(code, count) {
      const text = `${count} more deliveries were refused (${code})`;
      log.warn({ event: "delivery.refused_more", code, count }, text);
    },
  });
  const isIgnoredToldSingly = createToldSingly<IgnoreReason | "pong">({
    most: ignoredPerSecond,
    stretchMs: 1_000,
    tellMore(reason, count) {
      const text = `${count} more deliveries were ignored (${reason})`;
      log.info({ event: "delivery.ignored_more", reason, count }, text);
    },
  });

  return {
    refused(code, request, reason) {
      if (!isRefusalToldSingly(code)) return;
      // The address comes before the reason, at a fixed place: programs such as fail2ban look for it there.
      const from = clientOf(request);
      log.warn({ event: "delivery.refused", code, from, reason }, `A delivery was refused: ${code}`);
    },
    pong(host, request) {
      if (!isIgnoredToldSingly("pong")) return;
      const delivery = deliveryIdOf(host, request);
      const from = clientOf(request);
      const text = `A ping of ${host.name} was answered`;
      log.info({ event: "delivery.pong", host: host.name, delivery, from }, text);
    },
    ignored(host, reason, request) {
      if (!isIgnoredToldSingly(reason)) return;
      const delivery = deliveryIdOf(host, request);
      const level = reason === "branch_deleted" ? "warn" : "info";
      const fields = {
        event: "delivery.ignored",
        host: host.name,
        reason,
        delivery,
        from: clientOf(request),
      };
      log[level](fields, "A delivery was ignored");
    },
    dryRun(host, would, from) {
      const fields = { event: "delivery.dry_run", host: host.name, would: Object.keys(would)[0], from };
      log.info(fields, "A dry run was answered; nothing was recorded");
    },
    recorded(push, slot, { kind, deployment }, from) {
      const { host, ref, commit, deliveryId: delivery, repository, pusher } = push;
      const fields = {
        deployment: deployment.id,
        state: deployment.state,
        host,
        ref,
        commit,
        delivery,
        repository,
        pusher,
        from,
      };
      log.info({ event: `delivery.${kind}`, ...fields }, `A push to ${ref} was ${said[kind]}`);
      if (slot === "previous") {
        const text = "A delivery was signed with WEBHOOK_SECRET_PREVIOUS: set the new secret at the git host";
        log.warn({ event: "secret.previous_used", host, delivery }, text);
      }
    },
    notRecorded(push, error, from) {
      const { ref, commit, deliveryId: delivery } = push;
      log.error(
        { event: "delivery.not_recorded", ref, commit, delivery, from, err: error },
        "A push was not stored",
      );
    },
    failed(error, request) {
      const text = "A request failed because of a fault in Hotpush";
      log.error({ event: "request.failed", from: clientOf(request), err: error }, text);
    },
    crowded({ limit, closed, refused }) {
      const text = `Connections are near their limit of ${limit}: ${closed} idle ones were closed, ${refused} new ones refused`;
      log.warn({ event: "connections.crowded", limit, closed, refused }, text);
    },
    clientOf,
  };
}

/** The host's id of a delivery where it is harmless to print, else null: it is not signed. */
export function deliveryIdOf(host: Host, request: IncomingMessage): string | null {
  const id = host.deliveryHeader === null ? undefined : request.headers[host.deliveryHeader];
  return typeof id === "string" && /^[A-Za-z0-9-]{1,64}$/.test(id) ? id : null;
}

const said = { accepted: "recorded", duplicate: "recorded before" } as const;
