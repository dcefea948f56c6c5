import assert from "node:assert/strict";
import { type TestContext, type TestOptions, test } from "node:test";
import { type DoctorFault, type DoctorOptions, look, makePlace, type Place, runInShell } from "./doctor.ts";

/** Something that is broken for real, which one check has to find and its own words have to mend. */
export interface BrokenCase {
  readonly name: string;
  readonly check: string;
  readonly options?: TestOptions;
  readonly severity?: DoctorFault["severity"];
  readonly says: RegExp;
  readonly breakIt: (place: Place, t: TestContext) => unknown;
  /** How the doctor is run; the same before and after. */
  readonly run?: DoctorOptions | ((place: Place) => DoctorOptions);
  /** Does what the report says, where that is not just to run its command in a shell. */
  readonly mend?: (place: Place, fault: DoctorFault, t: TestContext) => unknown;
}

/** For each: the check passes at first, finds what is broken, and passes again when its command was run. */
export function testBroken(cases: readonly BrokenCase[]): void {
  for (const broken of cases) {
    test(
      `${broken.check}: ${broken.name}: told, and mended by what is told`,
      broken.options ?? {},
      async (t) => {
        const place = makePlace(t);
        await broken.breakIt(place, t);
        const run = typeof broken.run === "function" ? broken.run(place) : (broken.run ?? {});
        const told = await look(place, broken.check, run);
        const fault = told.faults.find(({ text }) => broken.says.test(text));
        assert.ok(fault, `${broken.says} in ${JSON.stringify(told)}`);
        assert.equal(fault.severity, broken.severity ?? "problem");
        await (broken.mend ?? runCommand)(place, fault, t);
        const after = await look(place, broken.check, run);
        assert.deepEqual([after.outcome, after.faults], ["ok", []], `after ${fault.command ?? fault.change}`);
      },
    );
  }
}

export async function runCommand(place: Place, { command, text }: DoctorFault): Promise<void> {
  assert.ok(command, `a command for: ${text}`);
  const ended = await runInShell(place, command);
  assert.equal(ended.exitCode, 0, `${command}: ${ended.stderr}`);
}
