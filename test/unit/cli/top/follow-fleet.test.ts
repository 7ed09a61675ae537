import { expect } from "chai";
import type { WatchLine } from "#api/controller-schemas.ts";
import { outdatedParts } from "#cli/top/follow-fleet.ts";

const register = (key: string): WatchLine => ({ type: "register", key, value: null, dot: "absent" });

describe("the parts of the dashboard that a change makes stale", () => {
  it("are the part of the changed register and those that depend on it", () => {
    expect(outdatedParts(register("node/n1/reg"))).to.deep.equal(["nodes", "conflicts", "certificates"]);
    expect(outdatedParts(register("node/n1/labels"))).to.deep.equal(["nodes", "conflicts"]);
    expect(outdatedParts(register("controller/c1/auth"))).to.deep.equal(["controllers"]);
    expect(outdatedParts(register("controller/c1/sub-ca"))).to.deep.equal(["controllers", "certificates"]);
    expect(outdatedParts(register("cert/0a"))).to.deep.equal(["certificates"]);
    expect(outdatedParts(register("revoked/ab"))).to.deep.equal(["certificates"]);
    expect(outdatedParts(register("conflict/c0"))).to.deep.equal(["conflicts", "nodes"]);
    expect(outdatedParts(register("update/release-0-4-0/node/n1"))).to.deep.equal(["updates"]);
    expect(outdatedParts({ type: "soft", about: "nodes", id: "n1" })).to.deep.equal(["nodes"]);
    expect(outdatedParts({ type: "soft", about: "conflicts", id: "c0" })).to.deep.equal(["conflicts", "nodes"]);
  });

  it("are none for registers that the dashboard does not show and for idle lines", () => {
    expect([outdatedParts(register("cluster/config/updates")), outdatedParts({ type: "idle" })]).to.deep.equal([
      [],
      [],
    ]);
  });
});
