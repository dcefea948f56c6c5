import assert from "node:assert/strict";
import { type TestContext, type TestOptions, test } from "node:test";
import { type DoctorFault, type DoctorOptions, makePlace, type Place, probe, runInShell } from "./doctor.ts";

/** A real fault. The check must find it, and its own commands must fix it. */
export interface BrokenCase {
  readonly name: string;
  readonly check: string;
  readonly options?: TestOptions;
  readonly severity?: DoctorFault["severity"];
  readonly breakIt: (place: Place, t: TestContext) => unknown;
  /** Options of the doctor, the same before and after. */
  readonly run?: DoctorOptions | ((place: Place) => DoctorOptions);
  /** Applies the fix, if that needs more than running the command in a shell. */
  readonly fix?: (place: Place, fault: DoctorFault, t: TestContext) => unknown;
}

/** Declares a test for each: the check finds the fault, and passes after its command has run. */
export function testBroken(cases: readonly BrokenCase[]): void {
  for (const broken of cases) {
    test(`${broken.check}: ${broken.name}: found and fixed`, broken.options ?? {}, async (t) => {
      const place = makePlace(t);
      await broken.breakIt(place, t);
      const run = typeof broken.run === "function" ? broken.run(place) : (broken.run ?? {});
      const found = await probe(place, broken.check, run);
      const [fault] = found.faults;
      assert.ok(fault, JSON.stringify(found));
      assert.equal(fault.severity, broken.severity ?? "problem", JSON.stringify(found));
      if (broken.fix) await broken.fix(place, fault, t);
      else for (const one of found.faults) await runCommand(place, one);
      const after = await probe(place, broken.check, run);
      assert.deepEqual([after.outcome, after.faults], ["ok", []], `after ${fault.command ?? fault.change}`);
    });
  }
}

export async function runCommand(place: Place, { command, text }: DoctorFault): Promise<void> {
  assert.ok(command, `a command for: ${text}`);
  const ended = await runInShell(place, command);
  assert.equal(ended.exitCode, 0, `${command}: ${ended.stderr}`);
}
