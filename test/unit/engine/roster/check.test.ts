import { expect } from "chai";
import { machineKey } from "#engine/roster/check.ts";
import { nodeEntry } from "#support/runs.ts";

describe("duplicates in a roster", () => {
  it("F-16: tells machines apart by way, address, port and state folder", () => {
    const [a, b] = [nodeEntry("a", { address: "x" }), nodeEntry("b", { address: "X" })];
    expect(machineKey(a)).to.equal(machineKey(b));
    for (const other of [{ port: 2222 }, { stateDir: "/srv/k" }, { jump: ["b1"] }])
      expect(machineKey({ ...b, ...other })).to.not.equal(machineKey(a));
  });
});
