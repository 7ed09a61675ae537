import { expect } from "chai";
import { excessOf, freeRoom, placeVm, type NodeRoom, type VmDemand } from "#controller/cluster/place-vm.ts";

const gib = 1024 ** 3;
const room = (cpus: number, memory: number, disk = 0) => ({ cpus, memory: memory * gib, disk: disk * gib });
const node = (name: string, has = room(4, 8, 100), more: Partial<NodeRoom> = {}): NodeRoom => ({
  id: `id-${name}`,
  name,
  dc: "DC1",
  has,
  hasVxlan: true,
  ...more,
});
const vm = (placed: string, spec = room(1, 2)) => ({ placed: `id-${placed}`, spec });
const demand = (size = room(1, 2, 10), more: Partial<VmDemand> = {}): VmDemand => ({
  size,
  dcs: [],
  needsVxlan: false,
  ...more,
});

describe("the placement of a VM", () => {
  it("takes the node with the most free memory, then the most free cores, then the first name", () => {
    const nodes = [node("b"), node("a"), node("c", room(8, 8, 100))];
    expect(placeVm(demand(), nodes, { others: [] })).to.deep.equal({ id: "id-c" });
    expect(placeVm(demand(), nodes, { others: [vm("c")] })).to.deep.equal({ id: "id-a" });
  });

  it("says for each node what it lacks, is, or is not", () => {
    const nodes = [
      node("far", room(64, 64), { dc: "DC2" }),
      node("small", room(1, 1, 100)),
      node("down", room(64, 64, 100), { closed: "is not-ready" }),
    ];
    expect(placeVm(demand(room(2, 4, 10), { dcs: ["DC1"] }), nodes, { others: [vm("small")] })).to.deep.equal({
      against: ["small: cpus: 2 wanted, 0 free; memory: 4 GiB wanted, 0 B free", "down: is not-ready"],
    });
    expect(placeVm(demand(room(1, 1), { dcs: ["DC3"] }), nodes.slice(0, 1), { others: [] })).to.deep.equal({
      against: ["far: is in DC2, not in DC3"],
    });
  });

  it("obeys a node that is named, every datacenter of the networks, and nodes without VXLAN", () => {
    const nodes = [node("a"), node("b", room(1, 4, 100), { hasVxlan: false })];
    expect(placeVm(demand(undefined, { node: "id-b" }), nodes, { others: [] })).to.deep.equal({ id: "id-b" });
    expect(placeVm(demand(undefined, { node: "id-b", needsVxlan: true }), nodes, { others: [] })).to.have.property(
      "against",
    );
    expect(placeVm(demand(undefined, { dcs: ["DC1", "DC2"] }), nodes, { others: [] })).to.have.property("against");
  });

  it("keeps a VM on its node while the conditions are met, also where the node takes no new VMs", () => {
    const nodes = [node("a", room(4, 8, 100), { closed: "has the taint gone" }), node("b", room(64, 64, 100))];
    const former = vm("a", room(1, 2, 10));
    expect(placeVm(demand(room(2, 4, 10)), nodes, { others: [], former })).to.deep.equal({ id: "id-a" });
    expect(placeVm(demand(room(2, 16, 10)), nodes, { others: [], former }), "it never moves by growing").to.deep.equal({
      against: ["a: memory: 16 GiB wanted, 8 GiB free"],
    });
    expect(placeVm(demand(undefined, { node: "id-b" }), nodes, { others: [], former })).to.deep.equal({ id: "id-b" });
  });

  it("lets a VM shrink on a node that has too many, and shows what is too much", () => {
    const a = node("a", room(2, 4, 100));
    const others = [vm("a", room(1, 4, 10))];
    const former = vm("a", room(2, 4, 10));
    expect(placeVm(demand(room(1, 2, 10)), [a], { others, former })).to.deep.equal({ id: "id-a" });
    expect(excessOf(freeRoom(a, [...others, former]))).to.deep.equal(["cpus: 1 too much", "memory: 4 GiB too much"]);
  });

  it("places on the node of a removed one's VM anew", () => {
    expect(placeVm(demand(), [node("b")], { others: [], former: vm("a") })).to.deep.equal({ id: "id-b" });
  });
});
