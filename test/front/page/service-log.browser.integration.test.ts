import assert from "node:assert/strict";
import { test } from "node:test";
import { noChromium, signInBrowser, startTab } from "../../harness/chromium.ts";
import { logged, startFakeEngine } from "../../harness/fake-engine.ts";
import { startPage } from "../../harness/page.ts";
import { startService } from "../../harness/service.ts";
import { temporaryDirectory } from "../../harness/temporary.ts";

test("the page follows a service, and goes on after a lost connection without a line twice", {
  skip: noChromium,
}, async (t) => {
  const repoPath = temporaryDirectory(t);
  const engine = await startFakeEngine(t, repoPath);
  engine.containers.push({ id: "aaa1", service: "web", number: 1 });
  const service = await startService(t, { repoPath, env: engine.env });
  const page = await startPage(t, service);
  const tab = await startTab(t);
  await signInBrowser(tab, service, page.port);
  await tab.open(`http://localhost:${page.port}/projects/default`);
  await tab.read(`document.querySelector("a[href$='/logs']").click()`);
  const { response } = await engine.log("aaa1");
  response.write(Buffer.concat([logged(1, "\u001b[31mred\n"), logged(2, "<b>plain</b>\n")]));
  await tab.until(`document.getElementById("lines").innerText.includes("web-1 | <b>plain</b>")`);
  await engine.start({ id: "bbb2", service: "web", number: 2 });
  (await engine.log("bbb2")).response.write(logged(3, "new\n"));
  await tab.until(`document.getElementById("lines").innerText.includes("web-2 | new")`);
  response.destroy();
  const again = await engine.log("aaa1", 1);
  const behindMs = Date.parse("2026-11-26T12:00:03Z") - Number(again.query.get("since")) * 1_000;
  assert.ok(behindMs > 0 && behindMs <= 11_000, `${behindMs} ms`);
  // Its line may be older than the last one of all, which is that of another container.
  again.response.write(Buffer.concat([logged(2, "old\n"), logged(2.5, "behind\n"), logged(4, "after\n")]));
  await tab.until(`document.getElementById("lines").innerText.includes("web-1 | after")`);
  const shown = await tab.read<string[]>(
    `[...document.querySelectorAll("#lines p > span")].map((one) => one.textContent)`,
  );
  assert.deepEqual(
    shown.filter((line) => line.includes("|")),
    ["web-1 | red", "web-1 | <b>plain</b>", "web-2 | new", "web-1 | behind", "web-1 | after"],
  );
  const others = tab.faults.filter((fault) => !fault.includes("ERR_INCOMPLETE_CHUNKED_ENCODING"));
  assert.deepEqual(others, []);
});
