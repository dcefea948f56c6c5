// Loads all of Hotpush once, so that Node keeps it compiled and the first start is as quick as any later one. It is kept
// where bin/hotpush and `npm start` look for it. With a Node that is too old for Hotpush there is nothing to do.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const [major] = process.versions.node.split(".");
if (Number(major) >= 24) await compile(dirname(dirname(fileURLToPath(import.meta.url))));

async function compile(root) {
  // Not above: older ones do not have them.
  const [{ globSync }, { enableCompileCache }] = await Promise.all([
    import("node:fs"),
    import("node:module"),
  ]);
  enableCompileCache(process.env.NODE_COMPILE_CACHE ?? join(root, "node_modules/.cache/compiled"));
  // main does what the command line says: it is asked for the version, lest it start the service, and nobody wants to
  // read that: what npm prints may be read by a program.
  process.argv.splice(2, Number.POSITIVE_INFINITY, "--version");
  process.stdout.write = () => true;
  const files = globSync(existsSync(join(root, "src")) ? "src/**/*.ts" : "dist/**/*.js", { cwd: root });
  for (const file of files) await import(join(root, file));
}
