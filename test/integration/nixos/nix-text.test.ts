import { execFileSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import fc from "fast-check";
import { nixText, type NixValue } from "#system/nixos/nix-text.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** Strings, names and blocks, with far more of Nix's special characters than usual. */
const text = fc
  .array(
    fc.oneof(
      fc.constantFrom(
        "$",
        "{",
        "}",
        "${",
        "''",
        "'",
        '"',
        "\\",
        "\n",
        "\n",
        "\t",
        "\r",
        " ",
        "  a",
        "a\n",
        "''$",
        "''\\n",
      ),
      fc.string({ unit: "grapheme", maxLength: 3 }),
    ),
    { maxLength: 12 },
  )
  .map((parts) => parts.join("").replaceAll("\0", ""));
/** Several whole lines, as in files. */
const lines = fc
  .array(
    fc
      .array(fc.constantFrom("$", "{", "${x}", "''", "'", "\\", " ", "  ", "a", '"'), { maxLength: 6 })
      .map((parts) => parts.join("")),
    { minLength: 2, maxLength: 5 },
  )
  .map((all) => `${all.join("\n")}\n`);
const value = fc.letrec<{ value: NixValue }>((tie) => ({
  value: fc.oneof(
    { weight: 3, arbitrary: text },
    { weight: 3, arbitrary: lines },
    fc.integer(),
    fc.boolean(),
    fc.array(tie("value"), { maxLength: 4 }),
    fc.dictionary(text, tie("value"), { maxKeys: 4, noNullPrototype: true }),
  ),
})).value;

describe("values written as Nix", () => {
  let folder: TempDir;
  before(async () => {
    folder = await makeTempDir("nix-text");
  });
  after(() => folder.remove());

  it("are read by Nix as the same values", () => {
    const seed = Number(process.env["KCORE_SEED"] ?? Date.now() % 1_000_000);
    const values = fc.sample(value, { numRuns: 2000, seed });
    const file = join(folder.path, `values-of-seed-${seed}.nix`);
    writeFileSync(file, nixText(values));
    const read = execFileSync("nix-instantiate", ["--eval", "--strict", "--json", "--store", "dummy://", file], {
      encoding: "utf8",
      maxBuffer: 1 << 28,
    });
    const found = JSON.parse(read) as unknown[];
    for (const [index, wanted] of values.entries())
      expect(found[index], `KCORE_SEED=${seed}: ${nixText(wanted)}`).to.deep.equal(wanted);
  });
});
