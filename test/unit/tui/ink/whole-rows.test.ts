import { join } from "node:path";
import { expect } from "chai";
import fc from "#support/properties.ts";
import { paintLine, span } from "#tui/ink/text.ts";
import { wholeRows, type Operation } from "#tui/ink/whole-rows.ts";
import { colourTheme } from "#support/scenes.ts";

/** Ink's own interface, which its package does not export. */
interface Output {
  readonly operations: readonly Operation[];
  readonly caches: { getStyledChars(line: string): readonly unknown[] };
  write(x: number, y: number, text: string, options: { transformers: readonly ((line: string) => string)[] }): void;
  clip(area: object): void;
  get(): { readonly output: string; readonly height: number };
}
const packages = join(import.meta.dirname, "../../../../node_modules");
const { default: InkOutput } = (await import(join(packages, "ink/build/output.js"))) as {
  default: new (size: { width: number; height: number }) => Output;
};
const { styledCharsToString } = (await import(join(packages, "@alcalzone/ansi-tokenize/build/index.js"))) as {
  styledCharsToString: (characters: readonly unknown[]) => string;
};

const same = { transformers: [(line: string) => line] };

/** A line as Ink writes it. */
const asInkWrites = (output: Output) => (line: string) => styledCharsToString(output.caches.getStyledChars(line));

function rowsOf(output: Output, height: number): readonly string[] | undefined {
  return wholeRows(output.operations, height, asInkWrites(output));
}

describe("the rows of an Ink frame", () => {
  const expectSame = (output: Output, height: number) => {
    const rows = rowsOf(output, height);
    // The same colours have several encodings.
    expect(
      rows
        ?.map(asInkWrites(output))
        .map((row) => row.trimEnd())
        ?.join("\n"),
    ).to.equal(output.get().output);
    expect(rows?.length).to.equal(height);
  };

  it("equal Ink's own output for any text", () => {
    const piece = fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 20 }),
      fc.constantFrom("漢字", "👩‍👩‍👧‍👦", "e\u0301", "\u00ad", "\u200b", "  ", "\u001b[1m", "\u001b[38;5;75mx\u001b[39m", ""),
    );
    const line = fc.array(fc.tuple(piece, fc.constantFrom("plain", "failed", "muted", "strong"))).map((spans) =>
      paintLine(
        spans.map(([text, role]) => span(text, role)),
        60,
        colourTheme,
      ),
    );
    const row = fc.oneof(line, fc.constant("the same"));
    fc.assert(
      fc.property(fc.array(row, { maxLength: 6 }), (lines) => {
        const output = new InkOutput({ width: 60, height: 6 });
        for (const [y, text] of lines.entries()) output.write(0, y, text, same);
        expectSame(output, 6);
      }),
    );
  });

  it("are undefined if texts share a row, have several lines, are outside or are clipped", () => {
    const rowsAfter = (draw: (output: Output) => void) => {
      const output = new InkOutput({ width: 20, height: 2 });
      draw(output);
      return rowsOf(output, 2);
    };
    expect(rowsAfter((output) => output.write(0, 1, "a", same))).to.deep.equal(["", "a"]);
    expect(rowsAfter((output) => [output.write(0, 1, "a", same), output.write(0, 1, "b", same)])).to.equal(undefined);
    expect(rowsAfter((output) => output.write(0, 0, "a\nb", same))).to.equal(undefined);
    expect(rowsAfter((output) => output.write(1, 0, "a", same))).to.equal(undefined);
    expect(rowsAfter((output) => output.write(0, 2, "a", same))).to.equal(undefined);
    expect(rowsAfter((output) => output.clip({ x1: 0, x2: 3 }))).to.equal(undefined);
  });

  it("are passed through Ink's transformers", () => {
    const output = new InkOutput({ width: 20, height: 1 });
    const loud = (line: string) => `\u001b[1m${line}\u001b[22m`;
    output.write(0, 0, "a b", { transformers: [loud, (line) => line.replace("a", "b")] });
    expect(rowsOf(output, 1)).to.deep.equal([output.get().output]);
    expect(output.get().output).to.equal(loud("b b"));
  });
});
