// Part of `npm run build`: gives dist/ a package.json of its own, in which the names that parts import each other by lead to
// the built files.
import { readFileSync, writeFileSync } from "node:fs";

const { imports } = JSON.parse(readFileSync(new URL("../package.json", import.meta.url), "utf8"));
const built = Object.entries(imports).map(([name, path]) => [
  name,
  path.replace("./src/", "./").replace(/\.ts$/, ".js"),
]);
writeFileSync(
  new URL("../dist/package.json", import.meta.url),
  `${JSON.stringify({ type: "module", imports: Object.fromEntries(built) }, null, 2)}\n`,
);
