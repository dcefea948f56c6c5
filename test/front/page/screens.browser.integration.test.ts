import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { callRun } from "../../../src/calls/client.ts";
import { noChromium, signInBrowser, startTab } from "../../harness/chromium.ts";
import { deliver, githubPush } from "../../harness/delivery.ts";
import { startPage } from "../../harness/page.ts";
import { letGo, startService, waitingScript } from "../../harness/service.ts";

const skip = noChromium;
const longestMs = 20_000;

test("a screen shows by itself what happens, also in its tab, and that its session has ended", {
  skip,
}, async (t) => {
  const { service, tab, url } = await start(t);
  await tab.open(`${url}/projects/default`);
  await tab.read("window.isSame = true");
  await deliver(service.url, githubPush());
  await tab.until(`document.title.startsWith("default: deploying")`, longestMs);
  assert.match(await iconOf(tab), /favicon-busy\.svg$/);
  letGo(service.repoPath);
  await tab.until(`document.title.startsWith("default: live")`, longestMs);
  assert.match(await iconOf(tab), /favicon-good\.svg$/);
  assert.equal(await tab.read("window.isSame"), true, "it was not loaded again");
  assert.deepEqual(tab.faults, []);
  // A session that is ended elsewhere: the open screen shows the way back in.
  await callRun(service.statePath, "endVisitor", { id: 2 });
  await tab.until(`document.body.innerText.includes("hotpush open")`, longestMs);
});

test("a button asks once more, takes a reason, and shows what it has done", { skip }, async (t) => {
  const { tab, url } = await start(t);
  await tab.open(`${url}/projects/default`);
  await tab.read(`document.querySelector("[popovertarget=pause]").focus()`);
  await tab.press("Enter");
  await tab.until(`document.querySelector("#pause").matches(":popover-open")`);
  assert.equal(await tab.read("document.activeElement.textContent"), "Pause", "Enter says yes");
  await tab.read(`document.querySelector("#pause input[name=reason]").focus()`);
  for (const letter of "lunch") await tab.press(letter);
  await tab.press("Enter");
  await tab.until(`document.body.innerText.includes("by Ada Park (session 2): lunch")`, longestMs);
  assert.equal(await tab.read("location.pathname"), "/projects/default");
  assert.deepEqual(tab.faults, []);
});

async function start(t: TestContext) {
  const service = await startService(t, { script: waitingScript });
  const page = await startPage(t, service);
  const tab = await startTab(t);
  await signInBrowser(tab, service, page.port);
  return { service, tab, url: `http://localhost:${page.port}` };
}

function iconOf(tab: Awaited<ReturnType<typeof start>>["tab"]): Promise<string> {
  return tab.read(`document.querySelector("link[rel=icon]").href`);
}
