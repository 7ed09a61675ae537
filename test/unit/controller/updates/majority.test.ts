import { expect } from "chai";
import { watchMajority } from "#controller/updates/majority.ts";

type Listed = ReturnType<Parameters<typeof watchMajority>[0]["list"]>[number];

describe("a majority of the controllers", () => {
  function watched(...states: readonly Listed["state"][]) {
    const world = { now: 1_000_000, states };
    const list = () => world.states.map((state) => ({ state }) as Listed);
    return { world, majority: watchMajority({ list }, () => world.now) };
  }

  it("is held by one that reaches more than half of them, itself among them", () => {
    expect([watched("self").majority.isHeld(), watched("self", "down").majority.isHeld()]).to.deep.equal([true, false]);
    expect(watched("self", "suspect", "down").majority.isHeld()).to.equal(true);
    expect(watched("self", "down", "down").majority.isHeld()).to.equal(false);
  });

  it("is held for 30 seconds more when it is lost, and again as soon as it is back", () => {
    const { world, majority } = watched("self", "connected", "down");
    expect(majority.isHeld()).to.equal(true);
    world.states = ["self", "down", "down"];
    world.now += 30_000;
    expect(majority.isHeld()).to.equal(true);
    world.now += 1;
    expect(majority.isHeld()).to.equal(false);
    world.states = ["self", "connected", "down"];
    expect(majority.isHeld()).to.equal(true);
  });
});
