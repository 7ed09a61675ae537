import { readFileSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "#engine/project/shipped.ts";

/** What docs/errors.md, which is shipped, says of a code. */
export interface Explained {
  readonly code: string;
  readonly meaning: string;
  readonly whatToDo: string;
}

/** Every code, in the order of the page. */
export function explainedCodes(): readonly Explained[] {
  const page = readFileSync(join(shippedRoot(), "docs/errors.md"), "utf8");
  return [...page.matchAll(/^\| ([A-Z][A-Z0-9]*_[A-Z0-9_]+|USAGE|INTERNAL|INTERRUPTED) +\| (.*) \|$/gm)].map(
    ([, code = "", rest = ""]) => {
      const [meaning = "", whatToDo = ""] = rest.split(/(?<!\\) \| /).map((cell) => cell.replaceAll("\\|", "|").trim());
      return { code, meaning, whatToDo };
    },
  );
}
