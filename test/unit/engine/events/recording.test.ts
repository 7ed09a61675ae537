import { expect } from "chai";
import { formatEvent, parseRecording } from "#engine/events/recording.ts";
import { KcoreError } from "#errors/problem.ts";
import { recordedRun } from "#support/recorded-runs.ts";

describe("parseRecording", () => {
  const bytes = Buffer.from(recordedRun("done").map(formatEvent).join(""));

  it("reads a record that is truncated at any byte up to its last whole line (F-3)", () => {
    for (let length = 0; length <= bytes.length; length += 7) {
      const cut = parseRecording(bytes.subarray(0, length));
      expect(cut.length).to.equal(bytes.subarray(0, length).lastIndexOf(10) + 1);
      expect(cut.events.length).to.equal(bytes.toString("utf8", 0, cut.length).split("\n").length - 1);
    }
  });

  it("ignores a last line that a crash of the machine filled with zeros", () => {
    const torn = Buffer.concat([bytes, Buffer.alloc(30), Buffer.from("\n")]);
    expect(parseRecording(torn)).to.deep.include({ length: bytes.length });
  });

  it("refuses a damaged line before the last, with its number", () => {
    const damaged = Buffer.from(bytes);
    damaged[0] = 0;
    expect(() => parseRecording(damaged)).to.throw(KcoreError, "line 1");
  });
});
