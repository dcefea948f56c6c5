const begin = "<!-- Written by npm run bench:rollout -->";
const end = "<!-- End of what npm run bench:rollout writes -->";
/** The section stands before this heading of docs/performance.md. */
const nextHeading = "## To repeat it";

/** The section on roll-outs in docs/performance.md with its marks, or null if there is none yet. */
export function rolloutSectionOf(page: string): string | null {
  const from = page.indexOf(begin);
  const to = page.indexOf(end);
  return from === -1 || to === -1 ? null : page.slice(from, to + end.length);
}

/** docs/performance.md with a new section on roll-outs; the rest stays the same to the byte. */
export function withRolloutSection(page: string, text: string): string {
  const section = `${begin}\n\n${text}\n\n${end}`;
  const known = rolloutSectionOf(page);
  if (known !== null) return page.replace(known, () => section);
  const at = page.indexOf(nextHeading);
  if (at === -1) return `${page.trimEnd()}\n\n${section}\n`;
  return `${page.slice(0, at)}${section}\n\n${page.slice(at)}`;
}
