import type { Browser } from "../access/sign-in.ts";
import type { Right, Visitor } from "../access/visitor.ts";

/** The visitor that asks, as `GET /visitor` has it. */
export interface VisitorJson {
  readonly name: string;
  readonly kind: Visitor["kind"];
  readonly rights: readonly Right[];
  /** Of the session or the token. */
  readonly id: number;
}

/** A session of the visitor, as `GET /sessions` has it. */
export interface OwnSessionJson extends Browser {
  readonly id: number;
  readonly createdAt: string;
  readonly lastSeenAt: string;
}
