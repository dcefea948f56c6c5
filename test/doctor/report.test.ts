import "../harness/environment.ts";
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  makeDoctorContext,
  ok,
  okUnless,
  type ProbeResult,
  problem,
  readSettings,
  skip,
  warning,
} from "../../src/doctor/context.ts";
import { type CheckReport, checks, resultOf, runChecks } from "../../src/doctor/examine.ts";
import { jsonReport, textReport } from "../../src/doctor/report.ts";
import { cleaned, openTerminal, type Terminal } from "../../src/platform/terminal.ts";

const plainly: Terminal["paint"] = (_, text) => text;
const inColor = openTerminal({ isTTY: true } as NodeJS.WriteStream, {}).paint;
const longText = `${"A sentence that goes on and on. ".repeat(8)}`;

function reportsOf(results: readonly ProbeResult[]): readonly CheckReport[] {
  const of = (index: number) => checks[index] ?? assert.fail("too many");
  return results.map((result, index) => ({ check: of(index), project: null, result }));
}

function withoutColors(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: it is what a terminal takes for a color.
  return text.replaceAll(/\x1b\[\d+m/g, "");
}

const everything: readonly ProbeResult[] = [
  ok("a fact"),
  ok(longText),
  skip(longText),
  resultOf(
    problem(longText, `sed -i 's/a/b/' /srv/app/.env && ${"chmod 600 /srv/app/.env && ".repeat(5)}true`),
  ),
  okUnless([warning(longText, { change: longText }), problem("Short.")], ""),
];

test("no line of the report is wider than 80 columns, with and without colours", () => {
  for (const isColored of [false, true]) {
    const report = withoutColors(cleaned(textReport(reportsOf(everything), isColored ? inColor : plainly)));
    for (const line of report.split("\n").filter((one) => !one.includes(" && ")))
      assert.ok(line.length <= 80, `${line.length}: ${line}`);
  }
});

test("the printed report", () => {
  const found = [
    ok("with /srv/shop/.env"),
    okUnless([problem("Other users can read it.", "chmod 600 /srv/shop/.env"), warning("It is old.")], ""),
    skip("there is no secret to search for"),
    resultOf(warning("No container of web serves.", { change: "services.web.restart: unless-stopped" })),
  ];
  assert.equal(textReport(reportsOf(found), plainly), printed);
});

const printed = `Configuration
  ✓ configuration       with /srv/shop/.env
  ✗ secret-files
      Other users can read it.
      Run:
        chmod 600 /srv/shop/.env
      It is old.
  - secret-committed    skipped: there is no secret to search for

Server
  ! containers
      No container of web serves.
      Change:
        services.web.restart: unless-stopped

1 problem, 2 warnings
`;

test("the JSON has every member of its contract, and the numbers of the last line", () => {
  const report = JSON.parse(jsonReport(reportsOf(everything)));
  const { problems, warnings, passed, skipped: left } = report;
  assert.deepEqual([problems, warnings, passed, left], [2, 1, 2, 1]);
  assert.deepEqual(Object.keys(report), ["problems", "warnings", "passed", "skipped", "checks"]);
  for (const check of report.checks) {
    assert.deepEqual(Object.keys(check), ["project", "id", "group", "subject", "outcome", "fact", "faults"]);
    for (const fault of check.faults) {
      assert.deepEqual(Object.keys(fault), ["severity", "text", "command", "change"]);
    }
  }
});

test("a check that itself fails is a warning, and the others go on", async () => {
  const [check] = checks;
  assert.ok(check);
  const failing = { ...check, probe: () => Promise.reject(new Error("EIO: of the test")) };
  const context = makeDoctorContext(readSettings({}, "/nonexistent"), null);
  const [failed, passed] = await runChecks(context, [failing, { ...check, probe: () => ok("a fact") }]);
  assert.equal(passed?.result.outcome, "ok");
  assert.ok(failed?.result.outcome === "faulty");
  assert.equal(failed.result.faults[0]?.severity, "warning");
  assert.match(failed.result.faults[0]?.text ?? "", /EIO: of the test/);
});
