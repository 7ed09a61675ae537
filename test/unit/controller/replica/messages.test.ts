import { expect } from "chai";
import { protocols, speaks } from "#controller/replica/messages.ts";

describe("the protocols of replication", () => {
  it("are spoken with a peer that has one in common, however new its newest is", () => {
    const [oldest, newest] = protocols;
    expect([speaks([newest, newest + 9]), speaks([newest + 1, newest + 9])]).to.deep.equal([true, false]);
    expect([speaks([0, oldest]), speaks([0, oldest - 1])]).to.deep.equal([true, false]);
  });
});
