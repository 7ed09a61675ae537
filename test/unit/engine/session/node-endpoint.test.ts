import { expect } from "chai";
import type { JumpEntry, NodeEntry, Roster } from "#engine/roster/roster.ts";
import { endpointOf } from "#engine/session/node-endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { nodeEntry, rosterOf } from "#support/runs.ts";

const noKey = (): Promise<never> => Promise.reject(new Error("the test has no passphrase"));

function jump(name: string, through: readonly string[] = []): JumpEntry {
  return { name, address: `${name}.example`, port: 22, user: "ops", hostKeys: [], jump: through };
}

function withJumps(roster: Roster, ...jumps: readonly JumpEntry[]): Roster {
  return { ...roster, jumps: new Map(jumps.map((entry) => [entry.name, entry])) };
}

describe("endpointOf", () => {
  it("lists jump hosts in order, with a jump host's own jumps and nodes as jump hosts", () => {
    const hops = (through: readonly string[], roster: (node: NodeEntry) => Roster) => {
      const node = nodeEntry("n1", { jump: through });
      return endpointOf(node, roster(node), noKey).jump;
    };
    const two = hops(["b1", "b2"], (node) => withJumps(rosterOf(node), jump("b1"), jump("b2")));
    expect(two.map(({ name, jump: next }) => [name, next.length])).to.deep.equal([
      ["b1", 0],
      ["b2", 0],
    ]);
    const own = hops(["b2"], (node) => withJumps(rosterOf(node), jump("b1"), jump("b2", ["b1"])));
    expect(own.map(({ name }) => name)).to.deep.equal(["b1", "b2"]);
    expect(hops(["n2"], (node) => rosterOf(node, "n2"))[0]).to.include({ name: "n2", address: "n2.example" });
  });

  it("refuses a cycle and an unknown jump host", () => {
    const node = nodeEntry("n1", { jump: ["b1"] });
    const cycle = withJumps(rosterOf(node), jump("b1", ["b2"]), jump("b2", ["b1"]));
    expect(() => endpointOf(node, cycle, noKey)).to.throw(KcoreError, "in a circle: n1 → b1 → b2 → b1");
    expect(() => endpointOf(node, rosterOf(node), noKey)).to.throw(KcoreError, "neither a node nor a jump host");
  });

  it("asks for a key's passphrase only when the transport needs it (S-9)", async () => {
    const asked: unknown[] = [];
    const node = nodeEntry("n1", { identityFile: "/keys/a", identityPassphrase: { env: "P" } });
    const endpoint = endpointOf(node, rosterOf(node), (file, reference) => {
      asked.push([file, reference]);
      return Promise.resolve("open");
    });
    expect(asked).to.deep.equal([]);
    expect([await endpoint.passphrase?.(), asked]).to.deep.equal(["open", [["/keys/a", { env: "P" }]]]);
  });
});
