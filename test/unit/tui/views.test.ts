import { expect } from "chai";
import { reduceEvents } from "#engine/events/reduce.ts";
import { drawCast, createPlainView } from "#tui/plain.ts";
import type { Detail } from "#tui/brief.ts";
import { diffRuns } from "#tui/diff-runs.ts";
import { drawDigest } from "#tui/draw-digest.ts";
import { drawReport } from "#tui/html/report.ts";
import { drawJunit } from "#tui/junit.ts";
import { digestOf } from "#support/digests.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";
import { writtenText } from "#support/written-text.ts";

// oxlint-disable-next-line no-control-regex -- finding control characters is the purpose
const escapes = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f]/;

/** The plain view's text at each event. */
function plain(name: string, detail: Detail = "verbose"): { at: number; text: string }[] {
  const { out, take } = writtenText();
  const view = createPlainView({ out, color: false, detail });
  return recordedRun(name).map((event) => {
    view.draw(event);
    return { at: event.at, text: take() };
  });
}

function textOf(written: readonly { readonly text: string }[]): string {
  return written.map(({ text }) => text).join("");
}

// ink/frames.test.ts has the golden frames of the live view.
describe("every view of every recorded run", () => {
  for (const name of recordedRunNames) {
    const events = recordedRun(name);
    const model = reduceEvents(events);
    const texts: Readonly<Record<string, () => string>> = {
      plain: () => textOf(plain(name)),
      brief: () => textOf(plain(name, "brief")),
      end: () => drawDigest(digestOf(events), { isEnd: true }),
      digest: () => drawDigest(digestOf(events)),
      junit: () => drawJunit(events),
      html: () => drawReport(model),
    };
    for (const [view, draw] of Object.entries(texts))
      it(`${name}: ${view} is deterministic, has no escape codes, and names every node`, () => {
        const text = draw();
        expect(text).to.equal(draw());
        expect(text).to.not.match(escapes);
        for (const node of model.nodes.keys()) expect(text).to.contain(node);
      });

    it(`${name}: a cast has the lines of the plain view at their times`, () => {
      const written = plain(name);
      const [head = "", ...lines] = drawCast(model, written).trimEnd().split("\n");
      expect(JSON.parse(head)).to.include({ version: 2 });
      const entries = lines.map((line) => JSON.parse(line) as [number, string, string]);
      expect(entries.map(([, , text]) => text.replaceAll("\r\n", "\n")).join("")).to.equal(
        written.map(({ text }) => text).join(""),
      );
      expect(entries.map(([at]) => at)).to.deep.equal(entries.map(([at]) => at).toSorted((a, b) => a - b));
    });

    it(`${name}: does not differ from itself`, () =>
      expect(diffRuns(model, model)).to.deep.equal({ nodes: [], steps: [] }));
  }
});
