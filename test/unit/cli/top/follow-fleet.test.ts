import { expect } from "chai";
import type { WatchLine } from "#api/controller-schemas.ts";
import { partsOf } from "#cli/top/follow-fleet.ts";

const register = (key: string): WatchLine => ({ type: "register", key, value: null, dot: "absent" });

describe("what the dashboard reads again", () => {
  it("is what the change is about, and what follows from it", () => {
    expect(partsOf(register("node/n1/reg"))).to.deep.equal(["nodes", "conflicts"]);
    expect(partsOf(register("controller/c1/auth"))).to.deep.equal(["controllers"]);
    expect(partsOf(register("cert/0a"))).to.deep.equal(["certificates"]);
    expect(partsOf(register("revoked/ab"))).to.deep.equal(["certificates"]);
    expect(partsOf(register("conflict/c0"))).to.deep.equal(["conflicts", "nodes"]);
    expect(partsOf(register("update/release-0-4-0/node/n1"))).to.deep.equal(["updates"]);
    expect(partsOf({ type: "soft", about: "nodes", id: "n1" })).to.deep.equal(["nodes"]);
    expect(partsOf({ type: "soft", about: "conflicts", id: "c0" })).to.deep.equal(["conflicts", "nodes"]);
  });

  it("is nothing for what it does not show, and while nothing happens", () => {
    expect([partsOf(register("cluster/config/updates")), partsOf({ type: "idle" })]).to.deep.equal([[], []]);
    expect(partsOf({ type: "synced" })).to.deep.equal([]);
  });
});
