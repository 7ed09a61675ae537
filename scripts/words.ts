/**
 * `npm run words [FOLDER…]`: comments, documentation and texts of src with a hidden subject (docs/glossary.md has the
 * actors) or a long sentence. Prints each at its line, and exits 1 if there is one.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { proseOf } from "./words/prose.ts";
import { faultsOf } from "./words/rules.ts";

const root = join(import.meta.dirname, "..");
const folders = process.argv.slice(2);
const wanted = [
  "{src,scripts,test,bench}/**/*.{ts,tsx,sh}",
  "{states,orchestrate,templates,roster,examples}/**/*.{yaml,sh}",
  "{README,CONTRIBUTING,CHANGELOG}.md",
  "docs/{,adr/}*.md",
];
const files = globSync(wanted, { cwd: root, exclude: (path) => path.includes("node_modules") }).filter(
  (file) => folders.length === 0 || folders.some((folder) => file.startsWith(folder)),
);
let found = 0;
for (const file of files.toSorted()) {
  const text = readFileSync(join(root, file), "utf8");
  for (const prose of proseOf(file, text))
    for (const { at, message } of faultsOf(prose)) {
      found++;
      const before = text.slice(0, prose.offsets[at]);
      const line = before.split("\n").length;
      console.log(`${file}:${line}:${before.length - before.lastIndexOf("\n")}  ${message}`);
    }
}
console.log(`words: ${files.length} files, ${found === 0 ? "nothing found" : `${found} found`}`);
process.exitCode = found === 0 ? 0 : 1;
