import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { expect } from "chai";
import { renderToString } from "ink";
import type { ReactElement } from "react";

/** `UPDATE_FRAMES=1 npx mocha FILE` rewrites the frames of a test file; review the difference. */
const isUpdating = process.env["UPDATE_FRAMES"] === "1";

/** A view to draw, its width, and whether escape characters are part of the frame. */
export interface Frame {
  readonly element: ReactElement;
  readonly columns: number;
  readonly isColoured: boolean;
}

/** Declares a test for each title: the drawn frame equals the frame of that title in test/fixtures/frames/NAME.txt. */
export function describeFrames(name: string, titles: readonly string[], draw: (title: string) => Frame): void {
  const file = join(import.meta.dirname, `../fixtures/frames/${name}.txt`);
  const parts = isUpdating ? [] : readFileSync(file, "utf8").split(/^=== /m).slice(1);
  const known = new Map(
    parts.map((part) => [part.slice(0, part.indexOf("\n")), part.slice(part.indexOf("\n") + 1, -1)]),
  );
  const drawn = new Map<string, string>();
  for (const title of titles)
    it(`equal the reviewed frame: ${title}`, () => {
      drawn.set(title, textOf(draw(title)));
      if (!isUpdating) expect(drawn.get(title)).to.equal(known.get(title));
    });
  after(() => {
    if (isUpdating) writeFileSync(file, [...drawn].map(([title, text]) => `=== ${title}\n${text}\n`).join(""));
    else expect([...known.keys()], `the frames of ${file}`).to.deep.equal(titles);
  });
}

/** The frame as ink lays it out; escape characters become visible text. */
function textOf({ element, columns, isColoured }: Frame): string {
  const text = renderToString(element, { columns });
  return (isColoured ? text.replaceAll("\u001b", "␛") : stripVTControlCharacters(text))
    .split("\n")
    .map((line) => line.trimEnd())
    .join("\n");
}
