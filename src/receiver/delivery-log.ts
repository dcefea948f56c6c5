import type { IncomingMessage } from "node:http";
import type { Log } from "../log.ts";
import type { HttpProblemCode } from "../problems.ts";
import type { Would } from "./dry-run.ts";
import type { Host } from "./hosts/host.ts";
import type { Push } from "./push.ts";
import type { Recorded } from "./read-delivery.ts";
import type { IgnoreReason } from "./select-push.ts";
import type { SecretSlot } from "./verify.ts";

/** Says of each delivery what became of it; never a body, a header or a secret. */
export interface DeliveryLog {
  readonly refused: (code: HttpProblemCode, request: IncomingMessage, reason?: string) => void;
  readonly pong: (host: Host, request: IncomingMessage) => void;
  readonly ignored: (host: Host, reason: IgnoreReason, request: IncomingMessage) => void;
  readonly rehearsed: (host: Host, would: Would, request: IncomingMessage) => void;
  readonly recorded: (push: Push, slot: SecretSlot, recorded: Recorded) => void;
  readonly notRecorded: (push: Push, error: unknown, request: IncomingMessage) => void;
}

/** Refusals of one kind told singly in a minute; the others are counted, so that a flood cannot fill a disk. */
const singlyPerMinute = 10;
const minuteMs = 60_000;

export function createDeliveryLog(log: Log): DeliveryLog {
  const refusals = new Map<HttpProblemCode, { sinceMs: number; count: number }>();

  function isToldSingly(code: HttpProblemCode): boolean {
    const nowMs = performance.now();
    const seen = refusals.get(code);
    if (!seen || nowMs - seen.sinceMs >= minuteMs) {
      if (seen && seen.count > singlyPerMinute) tellCount(code, seen.count - singlyPerMinute);
      refusals.set(code, { sinceMs: nowMs, count: 1 });
      return true;
    }
    seen.count += 1;
    return seen.count <= singlyPerMinute;
  }

  function tellCount(code: HttpProblemCode, count: number): void {
    log.warn(
      { event: "delivery.refused_more", code, count },
      `${count} more deliveries were refused (${code})`,
    );
  }

  return {
    refused(code, request, reason) {
      if (!isToldSingly(code)) return;
      const from = request.socket.remoteAddress;
      log.warn({ event: "delivery.refused", code, reason, from }, `A delivery was refused: ${code}`);
    },
    pong(host, request) {
      const delivery = deliveryIdOf(host, request);
      log.info({ event: "delivery.pong", host: host.name, delivery }, `A ping of ${host.name} was answered`);
    },
    ignored(host, reason, request) {
      const delivery = deliveryIdOf(host, request);
      const level = reason === "branch_deleted" ? "warn" : "info";
      log[level]({ event: "delivery.ignored", host: host.name, reason, delivery }, "A delivery was ignored");
    },
    rehearsed(host, would, request) {
      const from = request.socket.remoteAddress;
      const fields = { event: "delivery.dry_run", host: host.name, would: Object.keys(would)[0], from };
      log.info(fields, "A dry run was answered; nothing was recorded");
    },
    recorded(push, slot, { kind, deployment }) {
      const { host, ref, commit, deliveryId: delivery, repository } = push;
      const fields = {
        deployment: deployment.id,
        state: deployment.state,
        host,
        ref,
        commit,
        delivery,
        repository,
      };
      log.info({ event: `delivery.${kind}`, ...fields }, `A push to ${ref} was ${said[kind]}`);
      if (slot === "previous") {
        const text = "A delivery was signed with WEBHOOK_SECRET_PREVIOUS: set the new secret at the git host";
        log.warn({ event: "secret.previous_used", host, delivery }, text);
      }
    },
    notRecorded(push, error, request) {
      const { ref, commit, deliveryId: delivery } = push;
      const from = request.socket.remoteAddress;
      log.error(
        { event: "delivery.not_recorded", ref, commit, delivery, from, err: error },
        "A push was not stored",
      );
    },
  };
}

/** The host's id of a delivery where it is harmless to print, else null: it is not signed. */
export function deliveryIdOf(host: Host, request: IncomingMessage): string | null {
  const id = host.deliveryHeader === null ? undefined : request.headers[host.deliveryHeader];
  return typeof id === "string" && /^[A-Za-z0-9-]{1,64}$/.test(id) ? id : null;
}

const said = { accepted: "recorded", duplicate: "recorded before" } as const;
