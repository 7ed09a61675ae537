import { expect } from "chai";
import { withinCpuTime } from "#engine/step/within-cpu-time.ts";

describe("withinCpuTime", () => {
  it("repeats work that waited longer than it computed", () => {
    let runs = 0;
    const work = (): number => {
      runs += 1;
      if (runs === 1) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1000);
      return runs;
    };
    expect(withinCpuTime(work, 100)).to.deep.equal({ value: 2 });
  });

  it("returns undefined for endless work and for too deep recursion", () => {
    expect(withinCpuTime(() => /^(a+)+$/.test(`${"a".repeat(50)}b`), 50)).to.equal(undefined);
    const deep = (): number => 1 + deep();
    expect(withinCpuTime(deep, 1000)).to.equal(undefined);
  });

  it("throws the errors of the work", () => {
    const fail = (): never => {
      throw new TypeError("broken");
    };
    expect(() => withinCpuTime(fail)).to.throw(TypeError, "broken");
  });
});
