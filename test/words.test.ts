import assert from "node:assert/strict";
import { test } from "node:test";
import { faultsIn } from "./words.ts";

const found = (file: string, text: string) => faultsIn({ [file]: text }).map((fault) => fault.split('"')[1]);

test("a forbidden word is reported with its line and what to write instead", () => {
  assert.deepEqual(faultsIn({ "src/a.ts": "const a = 1;\n// Mend it.\n" }), [
    'src/a.ts:2: "Mend". Write: fix, resolve.',
  ]);
});

test("comments, strings and templates are read, and code is not", () => {
  assert.deepEqual(found("a.ts", "/**\n * Mends it.\n */\nconst mend = 1;"), ["Mends"]);
  assert.deepEqual(found("a.ts", 'log("please mend it"); mend("mend");'), ["mend"]);
  assert.deepEqual(found("a.ts", `log(\`please mend \${mend.mend} it\`);`), ["mend"]);
  assert.deepEqual(found("a.ts", 'if (/"/.test(mend)) log("no such file", mend); // fine'), []);
});

test("of a document the prose is read, and of a script its comments", () => {
  assert.deepEqual(found("a.md", "Mend `mend` it.\n\n```sh\nmend\n```\n"), ["Mend"]);
  assert.deepEqual(found("a.sh", "mend\n  # Mended.\n"), ["Mended"]);
});

test("a sentence must not begin with a free relative, but a question and a title may", () => {
  assert.deepEqual(found("a.md", "It runs. What runs stays.\n"), ["What"]);
  assert.deepEqual(found("a.ts", "/** It runs.\n * Whatever runs stays. */"), ["Whatever"]);
  assert.deepEqual(found("a.md", "What it needs\n\nIt runs. What is it? It is this.\n"), []);
});

test("a limited word is reported only beyond its rate", () => {
  const words = (count: number) => "so it is ".repeat(count);
  assert.deepEqual(found("a.md", `${words(400)}where it is`), []);
  assert.deepEqual(found("a.md", `${words(200)}where it is`), ["where"]);
  assert.deepEqual(found("a.md", `${words(850)}where it is, of which and told`), ["told"]);
});
