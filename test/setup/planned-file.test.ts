import assert from "node:assert/strict";
import { chownSync, lchownSync, mkdirSync, readdirSync, rmSync, statSync, symlinkSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CommandError } from "../../src/problems.ts";
import { planFile, withoutOtherValues, withSettings, writePlanned } from "../../src/setup/planned-file.ts";
import { fillDisk, mountTmpfs } from "../harness/mounts.ts";
import { needs } from "../harness/requirements.ts";
import { temporaryDirectory } from "../harness/temporary.ts";

const fixed = (name: string, value: string) => ({ name, value, isOpen: false });
const open = (name: string, value: string) => ({ name, value, isOpen: true });

test("a wrong value is replaced in place, a missing one is added, and a person's lines and choices stay", () => {
  const before = '# mine\nexport A="1 2"\nREPO_PATH=/old\nSITE=shop.example.org\n\nEMPTY=';
  const settings = [fixed("REPO_PATH", "/new"), open("SITE", ":80"), open("EMPTY", "1"), fixed("MORE", "2")];
  const after = withSettings(before, settings);
  const expected = before.replace("/old", "/new").replace("EMPTY=", "EMPTY=1");
  assert.equal(after, `${expected}\nMORE=2\n`);
  assert.equal(withSettings(after, settings), after);
  assert.throws(() => withSettings("", [fixed("NAME", "it's")]), CommandError);
});

test("only Hotpush's own values are shown, and no secret", () => {
  const settings = [fixed("REPO_PATH", "/srv"), fixed("WEBHOOK_SECRET", "5ec2e7")];
  const text = "DB_PASSWORD=hunter2\nexport TOKEN = t\nREPO_PATH=/srv\nWEBHOOK_SECRET=5ec2e7\n# note\n";
  const shown = withoutOtherValues(text, settings);
  assert.equal(shown, "DB_PASSWORD=…\nexport TOKEN =…\nREPO_PATH=/srv\nWEBHOOK_SECRET=…\n# note\n");
});

test("a full disk is named", needs("mount"), (t) => {
  const root = mountTmpfs(t, 1024 ** 2);
  fillDisk(root);
  const planned = planFile(root, { name: "Caddyfile", mode: 0o644, purpose: "", make: () => "x" });
  assert.throws(() => writePlanned(planned), { name: "CommandError", message: /ENOSPC.+The disk is full/ });
});

test("root writes nothing through a directory that its owner replaced by a link", needs("otherUser"), (t) => {
  const root = temporaryDirectory(t);
  const checkout = join(root, "checkout");
  const ours = join(root, "ours");
  for (const path of [checkout, ours]) mkdirSync(path);
  chownSync(checkout, 61_001, 61_001);
  const wanted = { name: "info/deep/exclude", mode: null, purpose: "", make: () => "/.env\n" };
  const planned = planFile(checkout, wanted);
  symlinkSync(ours, join(checkout, "info"));
  lchownSync(join(checkout, "info"), 61_001, 61_001);
  assert.throws(() => writePlanned(planned), { name: "CommandError", message: /EPERM/ });
  assert.deepEqual(readdirSync(ours), []);
  rmSync(join(checkout, "info"));
  writePlanned(planned);
  assert.equal(statSync(planned.path).uid, statSync(join(checkout, "info/deep")).uid);
});
