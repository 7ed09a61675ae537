import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** The cases of a file of test/cases, by name unless the test says otherwise. */
export function casesOf<Cases>(file: string): Cases {
  return parse(readFileSync(join(import.meta.dirname, "../../cases", file), "utf8")) as Cases;
}
