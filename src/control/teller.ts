import type { ServerResponse } from "node:http";
import type { DeploymentJson, StepJson } from "./deployment-json.ts";

/** What is told of a deployment to who follows it: one JSON object a line; docs/cli.md has each. */
export type ControlEvent =
  | { readonly event: "deployment"; readonly deployment: DeploymentJson }
  | { readonly event: "line"; readonly line: string }
  /** A step began; the same again with `durationMs` when it is over. */
  | { readonly event: "step"; readonly step: StepJson }
  /** So many lines were left out, because the reader was too slow; the log has them. */
  | { readonly event: "skipped"; readonly lines: number };

/** Tells events to one reader, who may be slow: lines are left out then, and counted, and nothing else is. */
export interface Teller {
  readonly tell: (event: ControlEvent) => void;
  readonly isFull: () => boolean;
  readonly end: () => void;
}

const mostWaitingBytes = 1024 ** 2;

export function createTeller(response: ServerResponse): Teller {
  let skipped = 0;
  const isFull = () => response.writableLength > mostWaitingBytes;

  function write(event: ControlEvent): void {
    if (!response.destroyed) response.write(`${JSON.stringify(event)}\n`);
  }

  function tellSkipped(): void {
    if (skipped > 0) write({ event: "skipped", lines: skipped });
    skipped = 0;
  }

  return {
    isFull,
    tell(event) {
      if (event.event === "line" && isFull()) {
        skipped += 1;
        return;
      }
      tellSkipped();
      write(event);
    },
    end() {
      tellSkipped();
      response.end();
    },
  };
}
