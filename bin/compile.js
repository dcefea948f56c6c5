// Loads all of Hotpush once, so that Node keeps it compiled, for whoever runs this: with the same user and the same cache
// (NODE_COMPILE_CACHE, as in bin/hotpush and `npm start`) the first start is then as quick as any. Where that fails,
// nothing is lost but that, unless `--strict` says that it must not. A Node that is too old for Hotpush has nothing to do.
import { existsSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const isStrict = process.argv.includes("--strict");
const [major] = process.versions.node.split(".");
if (Number(major) >= 24) {
  await compile(dirname(dirname(fileURLToPath(import.meta.url)))).catch((error) => {
    console.error(`Hotpush was not compiled ahead, its first start does that: ${error.message}`);
    process.exitCode = isStrict ? 1 : 0;
  });
}

async function compile(root) {
  // Not above: older ones do not have them.
  const [{ globSync }, { enableCompileCache }] = await Promise.all([
    import("node:fs"),
    import("node:module"),
  ]);
  enableCompileCache(process.env.NODE_COMPILE_CACHE || join(root, "node_modules/.cache/compiled"));
  // main does what the command line says: it is asked for the version, lest it start the service, and nobody wants to
  // read that: what npm prints may be read by a program.
  process.argv.splice(2, Number.POSITIVE_INFINITY, "--version");
  process.stdout.write = () => true;
  const files = globSync(existsSync(join(root, "src")) ? "src/**/*.ts" : "dist/**/*.js", { cwd: root });
  for (const file of files) await import(pathToFileURL(join(root, file)).href);
}
