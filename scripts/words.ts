/**
 * `npm run words [FOLDER…]`: finds sentences of more than 25 words, and words such as “what” or “someone” in place of a thing's name or
 * an actor (docs/glossary.md: operator, node, …). Reads comments, documentation and the texts of src. Prints the line and column of each
 * finding; exits 1 if there is one.
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
