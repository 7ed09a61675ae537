import { expect } from "chai";
import { limitsFor, maxConnectionsFor } from "#controller/server/connections.ts";

describe("the connections of a controller", () => {
  it("are enough for 10,000 agents, and few where few files may be open", () => {
    expect(limitsFor(maxConnectionsFor(524_288)).all).to.equal(12_224);
    expect(maxConnectionsFor(1024)).to.equal(928);
    expect(maxConnectionsFor(10)).to.equal(16);
  });
});
