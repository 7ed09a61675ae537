import { readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";

/** The contents of a file of test/cases. */
export function casesOf<Cases>(file: string): Cases {
  return parse(readFileSync(join(import.meta.dirname, "../../cases", file), "utf8")) as Cases;
}
