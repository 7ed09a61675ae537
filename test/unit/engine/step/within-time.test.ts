import { expect } from "chai";
import { withinTime } from "#engine/step/within-time.ts";

describe("work with a limit of CPU time", () => {
  it("is not refused for time in which the machine did something else", () => {
    let runs = 0;
    const work = (): number => {
      runs += 1;
      if (runs === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
      return runs;
    };
    expect(withinTime(work, 100)).to.deep.equal({ value: 2 });
  });

  it("is refused for work without an end, and for one that recurses too deep", () => {
    expect(withinTime(() => /^(a+)+$/.test(`${"a".repeat(50)}b`), 50)).to.equal(undefined);
    const deep = (): number => 1 + deep();
    expect(withinTime(deep, 1000)).to.equal(undefined);
  });

  it("throws the errors of the work", () => {
    const fail = (): never => {
      throw new TypeError("broken");
    };
    expect(() => withinTime(fail)).to.throw(TypeError, "broken");
  });
});
