import { expect } from "chai";
import { Trends } from "#cli/top/trends.ts";
import { fleetNode } from "#support/fleet.ts";

const node = (load: number, memoryUsed = 0) => fleetNode(1, { cpu: 4, memory: 100, usage: { load, memoryUsed } });
const { id } = fleetNode(1);

describe("trends of a node's load and memory", () => {
  it("have the highest value of each half minute, as a share of the node's capacity", () => {
    const trends = new Trends();
    for (const [at, load, used] of [
      [0, 1, 10],
      [10_000, 3, 5],
      [29_999, 2, 20],
      [30_000, 0, 50],
    ] as const)
      trends.note([node(load, used)], at);
    expect(trends.of(id)).to.deep.include({ load: [0.75, 0], memory: [0.2, 0.5] });
  });

  it("have eight values between 0 and 1, whatever a node reports", () => {
    const trends = new Trends();
    for (let bar = 0; bar < 12; bar++) trends.note([node(bar === 11 ? 1e300 : bar / 100, -5)], bar * 30_000);
    const { load = [], memory = [] } = trends.of(id) ?? {};
    expect(load).to.have.length(8);
    expect(load.at(-1)).to.equal(1);
    expect(memory).to.deep.equal(Array.from({ length: 8 }, () => 0));
    trends.note([fleetNode(1, { cpu: 0, memory: 0 })], 1e9);
    expect(trends.of(id)?.load.at(-1)).to.equal(0);
  });

  it("are dropped with the node", () => {
    const trends = new Trends();
    trends.note([node(1)], 0);
    trends.note([], 1);
    expect(trends.of(id)).to.equal(undefined);
  });
});
