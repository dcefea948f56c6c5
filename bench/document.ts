import { describeMachine, wasBusy } from "./machine.ts";
import { renderSection, renderTable, renderTargets, type Section } from "./report.ts";

/**
 * The whole of docs/performance.md.
 *
 * @param rollouts the section that bench:rollout has written, which stays as it is
 */
export function renderDocument(sections: readonly Section[], rollouts: string | null): string {
  const machine = renderTable({ columns: ["", ""], rows: describeMachine() });
  const parts = [
    introduction,
    ...(wasBusy ? [busy] : []),
    renderTargets(sections),
    "## The machine",
    machine,
    ...sections.map(renderSection),
    ...(rollouts === null ? [] : [rollouts]),
    repeating,
  ];
  return `${parts.join("\n\n")}\n`;
}

const introduction = `# Performance

This page is written by \`npm run bench\`, and its section on roll-outs by \`npm run bench:rollout\`; do not edit it by hand. What is compared with something else was measured in
turns with it, in the same run and on the same machine, so look at the ratios: the figures themselves are those of this
machine. No test asserts any of them.`;

const busy =
  "**Other programs were busy on this machine when these figures were taken: all of them, and the p99 most of all, are worse than they would be on a quiet one.**";

const repeating = `## To repeat it

\`\`\`sh
apt-get install wrk webhook       # what is missing is left out, and the bench says so
npm ci
npm run bench                     # about ten minutes; writes this page
npm run bench -- --quick          # about a minute; writes nothing
npm run bench:rollout             # a quarter of an hour; writes the section on roll-outs
npm run bench -- throughput       # one part: throughput, accept, first-line, start-up, commands, memory, body-size, history, connections
\`\`\`

Let nothing else run meanwhile: senders and receivers share the machine's cores.`;
