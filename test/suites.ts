/** Test files that belong together, by patterns of their paths, and the order in which they run. */
export interface Suite {
  readonly patterns: readonly string[];
  readonly exclude?: readonly string[];
  readonly filesAtATime: number;
  /** A file begins only when the processors are not busy with others: its tests have limits of time. */
  readonly waitsWhileBusy?: true;
  /** Parts of the names of the files that take longest, the longest first: if they begin early, they don't end last. */
  readonly first?: string;
  /** Parts of the names of files that run one after the other, beside the others: they need what there is only once. */
  readonly inTurn?: string;
  /** Parts of the names of files that run when all others have ended, one after the other. */
  readonly alone?: string;
  readonly needsEngine?: true;
}

/** Parts of names are separated by spaces. */
export const suites: Readonly<Record<string, Suite>> = {
  unit: {
    patterns: ["test/**/*.test.ts"],
    exclude: ["**/*.integration.test.ts", "test/e2e/**", "test/faults/**", "test/fuzz/**"],
    filesAtATime: 4,
    first: "deployments/resolve webhook/answers doctor/signers deployments/queue test-command",
  },
  integration: {
    patterns: ["test/**/*.integration.test.ts"],
    filesAtATime: 4,
    first: "log.browser deployments/recovery package demo output deployments/stop log-lines catch-up",
  },
  faults: {
    patterns: ["test/faults/**/*.test.ts", "test/fuzz/**/*.test.ts"],
    filesAtATime: 3,
    first: "faults/kill idle-connections faults/floods damaged-state faults/start io-error",
  },
  fuzz: { patterns: ["test/fuzz/**/*.test.ts"], filesAtATime: 2 },
  e2e: {
    patterns: ["test/e2e/**/*.test.ts"],
    filesAtATime: 2,
    waitsWhileBusy: true,
    first:
      "clean-server e2e/up. rollout-swarm. rollout-services swarm-nodes e2e/rollout.test rollout-failures rollout-requests e2e/images e2e/story rollout-recreate-failures",
    // An engine has only one server.
    inTurn: "e2e/server e2e/wild advice converge",
    // They kill the engine, or measure how long an app is away.
    alone: "server-networks without-engine",
    needsEngine: true,
  },
};
