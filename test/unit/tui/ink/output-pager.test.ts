import { expect } from "chai";
import type { RunEventBody } from "#engine/events/event.ts";
import { formatEvent } from "#engine/events/recording.ts";
import { OutputPager, type OutputPlace } from "#tui/ink/output-pager.ts";

const step = { node: "n1", stage: "s", step: "s/a", title: "a", module: "command.run" } as const;
const printed = (text: string, more: object = {}): RunEventBody => ({
  type: "step.output",
  node: "n1",
  step: "s/a",
  stream: "out",
  text,
  ...more,
});

/** A growing record; `most` is the size of its largest read. */
class GrowingRecord {
  #bytes = Buffer.alloc(0);
  #seq = 0;
  most = 0;

  get seq(): number {
    return this.#seq;
  }

  add(...bodies: readonly RunEventBody[]): void {
    const lines = bodies.map((body) => formatEvent({ seq: (this.#seq += 1), at: 1, ...body }));
    this.#bytes = Buffer.concat([this.#bytes, Buffer.from(lines.join(""))]);
  }

  readonly read = async (at: number, length: number): Promise<Buffer> => {
    this.most = Math.max(this.most, length);
    return Promise.resolve(this.#bytes.subarray(at, at + length));
  };
}

describe("the pages of a step's output", () => {
  const open = (record: GrowingRecord, width = 40, more: Partial<OutputPlace> = {}) => {
    let changed = Promise.withResolvers<undefined>();
    const pager = new OutputPager({ node: "n1", step: "s/a", width, wrap: true, find: "", ...more }, record.read, () =>
      changed.resolve(undefined),
    );
    const news = async (): Promise<void> => {
      await changed.promise;
      changed = Promise.withResolvers();
    };
    const follow = async (seq = record.seq): Promise<void> => {
      pager.follow(seq);
      await news();
    };
    const rows = async (top: number, end: number) => {
      if (pager.slice(top, end) === undefined) await news();
      return pager.slice(top, end)?.map(({ text, stream }) => `${stream} ${text}`);
    };
    return { pager, follow, rows };
  };

  it("have every line of this step only, with its stream, at any position", async () => {
    const record = new GrowingRecord();
    const lines = Array.from({ length: 20_000 }, (_, line) =>
      printed(`line ${line}\n`, line % 100 === 7 ? { stream: "err" } : {}),
    );
    // Output of another step that looks like an event of this one.
    const foreign = printed(`"type":"step.output","node":"n1","step":"s/a",\n`, { node: "n2" });
    record.add({ type: "step.started", ...step }, ...lines.slice(0, 9000), foreign, ...lines.slice(9000));
    const { pager, follow, rows } = open(record);
    await follow();
    expect([pager.isComplete, pager.rows]).to.deep.equal([true, 20_000]);
    expect(await rows(0, 3)).to.deep.equal(["out line 0", "out line 1", "out line 2"]);
    expect(await rows(12_345, 12_347)).to.deep.equal(["out line 12345", "out line 12346"]);
    expect(await rows(19_907, 19_908)).to.deep.equal(["err line 19907"]);
    expect(await rows(19_999, 20_000)).to.deep.equal(["out line 19999"]);
    expect(record.most).to.be.at.most(1 << 20);
  });

  it("grow with the record up to the view's event", async () => {
    const record = new GrowingRecord();
    record.add({ type: "step.started", ...step }, printed("one\n"), printed("two\n"));
    const { pager, follow, rows } = open(record);
    await follow(2);
    expect([pager.rows, await rows(0, 1)]).to.deep.equal([1, ["out one"]]);
    record.add(printed("three\nfour\n"));
    await follow();
    expect([pager.rows, await rows(0, 4)]).to.deep.equal([4, ["out one", "out two", "out three", "out four"]]);
    await follow(2);
    expect([pager.rows, await rows(0, 1)]).to.deep.equal([1, ["out one"]]);
  });

  it("begin again when the step is started again", async () => {
    const record = new GrowingRecord();
    record.add({ type: "step.started", ...step }, printed("first try\n"));
    record.add({ type: "step.started", ...step, step: "s/other" });
    record.add({ type: "step.started", ...step }, printed("second try\n"));
    const { pager, follow, rows } = open(record);
    await follow();
    expect([pager.rows, await rows(0, 1)]).to.deep.equal([1, ["out second try"]]);
  });

  it("have the matches of a search, also in later output", async () => {
    const record = new GrowingRecord();
    const line = (index: number) => printed(`${index % 1000 === 7 ? "Needle" : "hay"} ${index}\n`);
    record.add({ type: "step.started", ...step }, ...Array.from({ length: 3000 }, (_, index) => line(index)));
    const { pager, follow, rows } = open(record, 40, { find: "needle" });
    await follow();
    expect(pager.matches).to.deep.equal([7, 1007, 2007]);
    record.add(printed("a needle\n"));
    await follow();
    expect(pager.matches).to.deep.equal([7, 1007, 2007, 3000]);
    await rows(7, 8);
    expect(pager.slice(7, 8)?.[0]).to.deep.include({ text: "Needle 7", marks: [[0, 6]], isMatch: true });
    record.add({ type: "step.started", ...step });
    await follow();
    expect(pager.matches).to.deep.equal([]);
  });

  it("S-4: wrap long lines, show gaps, and escape control characters", async () => {
    const record = new GrowingRecord();
    record.add({ type: "step.started", ...step }, printed(`${"x".repeat(25)}\n\u001b[31mred\u0007`, { skipped: 5 }));
    const { follow, rows } = open(record, 10);
    await follow();
    expect(await rows(0, 5)).to.deep.equal([
      "out … 5 bytes left out",
      `out ${"x".repeat(10)}`,
      `out ${"x".repeat(10)}`,
      "out xxxxx",
      "out red\\x07",
    ]);
  });
});
