import { globSync, readFileSync } from "node:fs";

/** Prints how many code lines and files each folder has. Blank lines, comments and other languages do not count. */
for (const root of ["src", "test"]) {
  const all = globSync(`${root}/**/*.{ts,js,css}`).map((path) => {
    const lines = countLines(readFileSync(path, "utf8"));
    return { folder: path.split("/").slice(0, -1).slice(0, 2).join("/"), lines };
  });
  const folders = [...Map.groupBy(all, ({ folder }) => folder)];
  for (const [name, files] of [...folders.sort(), [`all of ${root}`, all] as const]) {
    const lines = files.reduce((sum, file) => sum + file.lines, 0);
    const text = `${name.padEnd(24)}${String(lines).padStart(7)} lines`;
    process.stdout.write(`${text}${String(files.length).padStart(5)} files\n`);
  }
}

function countLines(text: string): number {
  let isInComment = false;
  let count = 0;
  for (const line of text.split("\n").map((one) => one.trim())) {
    if (line === "" || (!isInComment && line.startsWith("//"))) continue;
    const startsComment = !isInComment && line.startsWith("/*");
    if (!isInComment && !startsComment) count += 1;
    if (isInComment || startsComment) isInComment = !line.includes("*/");
  }
  return count;
}
