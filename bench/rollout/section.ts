/** The lines before and after a section of docs/performance.md that a bench of roll-outs writes. */
export interface Marks {
  readonly begin: string;
  readonly end: string;
}

const rolloutMarks: Marks = {
  begin: "<!-- Written by npm run bench:rollout -->",
  end: "<!-- End of what npm run bench:rollout writes -->",
};
export const budgetMarks: Marks = {
  begin: "<!-- Written by bench/rollout/budget.ts -->",
  end: "<!-- End of what bench/rollout/budget.ts writes -->",
};
export const againstMarks: Marks = {
  begin: "<!-- Written by bench/rollout/against.ts -->",
  end: "<!-- End of what bench/rollout/against.ts writes -->",
};
/** The sections stand before this heading of docs/performance.md. */
const nextHeading = "## To repeat it";

/** The sections on roll-outs in docs/performance.md with their marks, or null if there are none yet. */
export function rolloutSectionOf(page: string): string | null {
  const found = [rolloutMarks, budgetMarks, againstMarks].flatMap((marks) => sectionOf(page, marks) ?? []);
  return found.length === 0 ? null : found.join("\n\n");
}

function sectionOf(page: string, { begin, end }: Marks): string | null {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  return from === -1 || to === -1 ? null : page.slice(from, to + end.length);
}

/** docs/performance.md with a new section on roll-outs under load; the rest stays the same to the byte. */
export function withRolloutSection(page: string, text: string): string {
  return withSection(page, rolloutMarks, text);
}

/** The same, for the section with these marks. A new one comes last. */
export function withSection(page: string, marks: Marks, text: string): string {
  const section = `${marks.begin}\n\n${text}\n\n${marks.end}`;
  const known = sectionOf(page, marks);
  if (known !== null) return page.replace(known, () => section);
  const at = page.indexOf(nextHeading);
  if (at === -1) return `${page.trimEnd()}\n\n${section}\n`;
  return `${page.slice(0, at)}${section}\n\n${page.slice(at)}`;
}
