import "../harness/environment.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import { makeDoctorContext, readSettings } from "../../src/doctor/context.ts";
import { type CheckReport, checks, runChecks } from "../../src/doctor/examine.ts";
import { type Finding, ok, okUnless, problem, skip, warning } from "../../src/doctor/finding.ts";
import { textReport } from "../../src/doctor/report.ts";

function reportsOf(...results: readonly Finding[]): readonly CheckReport[] {
  const of = (index: number) => checks[index] ?? assert.fail("too many");
  return results.map((result, index) => ({ check: of(index), project: null, result }));
}

const long = "Other users can read it, and whoever can read it can have anything deployed here.";
const command = `chmod 600 /srv/shop/.env && ${"true && ".repeat(10)}true`;

test("the printed report: no line but a command is wider than 80 columns", () => {
  const found = reportsOf(
    ok("with /srv/shop/.env"),
    okUnless([problem(long, command), warning("It is old.")], ""),
    skip("there is no secret to search for"),
    warning("No container of web serves.", { change: "services.web.restart: unless-stopped" }),
  );
  assert.equal(
    textReport(found, (_, text) => text),
    printed,
  );
});

const printed = `Configuration
  ✓ configuration       with /srv/shop/.env
  ✗ secret-files
      Other users can read it, and whoever can read it can have anything
      deployed here.
      Run:
        ${command}
      It is old.

Server
  - containers          skipped: there is no secret to search for
  ! caddy
      No container of web serves.
      Change:
        services.web.restart: unless-stopped

Problems: 1, warnings: 2; passed: 1, skipped: 1
`;

test("a check that itself fails is a warning, and the others go on", async () => {
  const [check] = checks;
  assert.ok(check);
  const failing = { ...check, probe: () => Promise.reject(new Error("EIO: of the test")) };
  const context = makeDoctorContext(readSettings({}, "/nonexistent"), null);
  const [failed, passed] = await runChecks(context, [failing, { ...check, probe: () => ok("a fact") }]);
  assert.equal(passed?.result.outcome, "ok");
  assert.ok(failed?.result.outcome === "faulty");
  assert.equal(failed.result.faults[0]?.severity, "warning");
});
