import "../harness/environment.ts";
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { test } from "node:test";
import { ok, okUnless, type ProbeResult, problem, resultOf, skip, warning } from "../../src/doctor/check.ts";
import { type CheckReport, checks, runChecks } from "../../src/doctor/checks.ts";
import { makeDoctorContext } from "../../src/doctor/context.ts";
import { jsonReport, textReport, wrapCommand } from "../../src/doctor/report.ts";
import { readSettings } from "../../src/doctor/settings.ts";
import { cleaned } from "../../src/platform/terminal/output.ts";
import { openTerminal, type Terminal } from "../../src/platform/terminal/terminal.ts";

const plainly: Terminal["paint"] = (_, text) => text;
const inColor = openTerminal({ isTTY: true } as NodeJS.WriteStream, {}).paint;
const path = "/srv/a very/long path/that has 'quotes'/and goes on/and on/and on/and on/and on/to its end";
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
    for (const line of report.split("\n")) assert.ok(line.length <= 80, `${line.length}: ${line}`);
  }
});

test("colours only repeat what the words say", () => {
  const plain = textReport(reportsOf(everything), plainly);
  assert.ok(!plain.includes("\x1b"));
  const colored = cleaned(textReport(reportsOf(everything), inColor));
  assert.ok(colored.includes("\x1b[31m"));
  assert.equal(withoutColors(colored), plain);
});

test("a command that takes several lines does the same when it is pasted", () => {
  const words = ["one", "two  three", path, "$HOME", "back\\slash", 'double "quotes"', "last"];
  const quoted = words.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(" ");
  const command = `for word in ${quoted}; do printf '%s\\n' "$word"; done && echo "a | b && c" | cat && true || false`;
  const lines = wrapCommand(command, 40);
  assert.ok(lines.length > 4);
  const outputs = [command, lines.join("\n")].map(
    (script) => spawnSync("sh", ["-c", script], { encoding: "utf8", env: process.env }).stdout,
  );
  assert.ok(outputs[0]?.includes("goes on"));
  assert.equal(outputs[1], outputs[0]);
});

const endings: readonly (readonly [readonly ProbeResult[], string])[] = [
  [[ok("a"), ok("b")], "All 2 checks passed"],
  [[ok("a"), skip("b")], "1 check passed, 1 skipped"],
  [[ok("a"), okUnless([problem("a"), problem("b"), warning("c")], "")], "2 problems, 1 warning"],
  [[okUnless([warning("a"), warning("b")], "")], "2 warnings"],
  [[resultOf(problem("a"))], "1 problem"],
];

for (const [results, line] of endings) {
  test(`the last line is "${line}"`, () => {
    assert.equal(textReport(reportsOf(results), plainly).trimEnd().split("\n").at(-1), line);
  });
}

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
