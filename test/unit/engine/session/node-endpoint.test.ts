import { expect } from "chai";
import type { JumpEntry, Roster } from "#engine/roster/roster.ts";
import { endpointOf, placeOfNode } from "#engine/session/node-endpoint.ts";
import { KcoreError } from "#errors/problem.ts";
import { nodeEntry, rosterOf } from "#support/runs.ts";

const noKey = (): Promise<never> => Promise.reject(new Error("nobody asked for a passphrase"));

function jump(name: string, through: readonly string[] = []): JumpEntry {
  return { name, address: `${name}.example`, port: 22, user: "ops", hostKeys: [], jump: through };
}

function withJumps(roster: Roster, ...jumps: readonly JumpEntry[]): Roster {
  return { ...roster, jumps: new Map(jumps.map((entry) => [entry.name, entry])) };
}

describe("endpoints of nodes", () => {
  it("goes through jump hosts, first hop first", () => {
    const node = nodeEntry("n1", { jump: ["b1", "b2"] });
    const endpoint = endpointOf(node, withJumps(rosterOf(node), jump("b1"), jump("b2")), noKey);
    expect(endpoint.jump.map(({ name }) => name)).to.deep.equal(["b1", "b2"]);
    expect(endpoint.jump.every((hop) => hop.jump.length === 0)).to.equal(true);
  });

  it("reaches a jump host by its own way", () => {
    const node = nodeEntry("n1", { jump: ["b2"] });
    const endpoint = endpointOf(node, withJumps(rosterOf(node), jump("b1"), jump("b2", ["b1"])), noKey);
    expect(endpoint.jump.map(({ name }) => name)).to.deep.equal(["b1", "b2"]);
  });

  it("takes another node as a jump host", () => {
    const node = nodeEntry("n1", { jump: ["n2"] });
    expect(endpointOf(node, rosterOf(node, "n2"), noKey).jump[0]).to.include({ name: "n2", address: "n2.example" });
  });

  it("refuses a circle and an unknown host", () => {
    const node = nodeEntry("n1", { jump: ["b1"] });
    const circle = withJumps(rosterOf(node), jump("b1", ["b2"]), jump("b2", ["b1"]));
    expect(() => endpointOf(node, circle, noKey)).to.throw(KcoreError, "in a circle: n1 → b1 → b2 → b1");
    expect(() => endpointOf(node, rosterOf(node), noKey)).to.throw(KcoreError, "neither a node nor a jump host");
  });

  it("S-9: asks for a key's passphrase only when it is wanted, with the roster's reference", async () => {
    const asked: unknown[] = [];
    const node = nodeEntry("n1", { identityFile: "/keys/a", identityPassphrase: { env: "P" } });
    const endpoint = endpointOf(node, rosterOf(node), (file, reference) => {
      asked.push([file, reference]);
      return Promise.resolve("open");
    });
    expect([asked, await endpoint.passphrase?.(), asked]).to.deep.equal([[], "open", [["/keys/a", { env: "P" }]]]);
  });

  it("F-16: tells machines apart by way, address, port and state folder", () => {
    const [a, b] = [nodeEntry("a", { address: "x" }), nodeEntry("b", { address: "x" })];
    expect(placeOfNode(a)).to.equal(placeOfNode(b));
    for (const other of [{ port: 2222 }, { stateDir: "/srv/k" }, { jump: ["b1"] }])
      expect(placeOfNode({ ...b, ...other })).to.not.equal(placeOfNode(a));
  });
});
