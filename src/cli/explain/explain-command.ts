import { Command } from "commander";
import { registry } from "#engine/modules/registry.ts";
import { usageError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { addResultOption } from "../options.ts";
import { printRows, printResult } from "../terminal/format-result.ts";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { shippedRoot } from "#engine/project/shipped.ts";

interface Flags {
  readonly output: "table" | "json";
  readonly search?: string;
}

/** `kcore explain [CODE…]`: prints rows of docs/errors.md. */
export function explainCommand(): Command {
  return addResultOption(new Command("explain"))
    .description(
      "The meaning of an error code, the remedy, and the modules that refuse with it; without a code, all codes",
    )
    .argument("[code...]", "a code, as it stands in brackets behind an error")
    .option("--search <text>", "only the codes in whose text this stands")
    .addHelpText(
      "after",
      `
Examples:
  kcore explain DISK_HAS_DATA
  kcore explain --search sudo
  kcore explain -o json`,
    )
    .action(async (words: readonly string[], flags: Flags) => {
      const known = explainedCodes();
      if (words.length === 0) list(known, flags);
      else
        await show(
          words.map((word) => find(known, word)),
          flags,
        );
    });
}

function list(known: readonly ErrorExplanation[], { output, search }: Flags): void {
  const text = search?.toLowerCase() ?? "";
  const found = known.filter((one) =>
    Object.values<string>({ ...one }).some((cell) => cell.toLowerCase().includes(text)),
  );
  const rows = found.map(({ code, meaning }) => [code, meaning]);
  printRows(found, output, ["CODE", "MEANING"], rows, `no code has “${search ?? ""}” in its text`);
}

/** The explanation of a code in any case, with or without the brackets of an error line. @throws KcoreError USAGE */
function find(known: readonly ErrorExplanation[], word: string): ErrorExplanation {
  const wanted = word.replaceAll(/[[\]]/g, "").toUpperCase();
  const found = known.find(({ code }) => code === wanted);
  if (found) return found;
  throw usageError(
    `there is no code “${word}”`,
    suggestHint(
      wanted,
      known.map(({ code }) => code),
      "kcore explain lists them; --search TEXT finds them by their text",
    ),
  );
}

async function show(codes: readonly ErrorExplanation[], { output }: Flags): Promise<void> {
  const modules = await Promise.all(registry.values().map((load) => load()));
  const found = codes.map((one) => ({
    ...one,
    modules: modules
      .filter(({ refusals = [] }) => (refusals as readonly string[]).includes(one.code))
      .map(({ name }) => name),
  }));
  printResult(found, output, () => found.map(draw).join("\n"));
}

function draw({
  code,
  meaning,
  whatToDo,
  modules,
}: ErrorExplanation & { readonly modules: readonly string[] }): string {
  const refused = modules.length === 0 ? "" : `\nModules that refuse with it: ${modules.join(", ")}\n`;
  return `${code}\n  ${meaning}\n\nWhat to do:\n  ${whatToDo}\n${refused}`;
}

/** A code's row in docs/errors.md, which is shipped. */
export interface ErrorExplanation {
  readonly code: string;
  readonly meaning: string;
  readonly whatToDo: string;
}

/** The explanations of all codes, in the order of docs/errors.md. */
export function explainedCodes(): readonly ErrorExplanation[] {
  const page = readFileSync(join(shippedRoot(), "docs/errors.md"), "utf8");
  return [...page.matchAll(/^\| ([A-Z][A-Z0-9]*_[A-Z0-9_]+|USAGE|INTERNAL|INTERRUPTED) +\| (.*) \|$/gm)].map(
    ([, code = "", rest = ""]) => {
      const [meaning = "", whatToDo = ""] = rest.split(/(?<!\\) \| /).map((cell) => cell.replaceAll("\\|", "|").trim());
      return { code, meaning, whatToDo };
    },
  );
}
