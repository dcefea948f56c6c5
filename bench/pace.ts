/** How much is measured: little for a quick try, everything for a report. */
export type Pace = <Amount>(amounts: { readonly quick: Amount; readonly full: Amount }) => Amount;

export const quick: Pace = (amounts) => amounts.quick;
export const full: Pace = (amounts) => amounts.full;

/**
 * Measures each subject once in every round, so that other work of the machine affects all of them equally.
 *
 * @returns the results of each subject
 */
export async function perRound<Subject, Result>(
  subjects: readonly Subject[],
  rounds: number,
  measure: (subject: Subject) => Promise<Result>,
): Promise<ReadonlyMap<Subject, readonly Result[]>> {
  const results = new Map<Subject, Result[]>(subjects.map((subject) => [subject, []]));
  for (let round = 0; round < rounds; round += 1) {
    for (const subject of subjects) results.get(subject)?.push(await measure(subject));
  }
  return results;
}
