/** Chooses how much is measured: little for trying the bench out, all of it for a report. */
export type Pace = <Amount>(amounts: { readonly quick: Amount; readonly full: Amount }) => Amount;

export const quick: Pace = (amounts) => amounts.quick;
export const full: Pace = (amounts) => amounts.full;

/**
 * Measures each subject once in every round, so that whatever else the machine does meanwhile meets all of them alike.
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
