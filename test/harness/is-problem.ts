import assert from "node:assert/strict";
import { type ProblemCode, ProblemError } from "../../src/problems.ts";

/** For `assert.throws` and `assert.rejects`: a ProblemError with this code and a matching `message`. */
export function isProblem(code: ProblemCode, message: RegExp = /./): (error: unknown) => true {
  return (error) => {
    assert.ok(error instanceof ProblemError, String(error));
    assert.equal(error.problem.code, code);
    assert.match(error.message, message);
    return true;
  };
}
