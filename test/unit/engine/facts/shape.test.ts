import { expect } from "chai";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import { factAt, factValues, isFactPath, selectFact } from "#engine/facts/paths.ts";
import { shapeFacts } from "#engine/facts/shape.ts";

const flat = {
  "os.id": "debian",
  "os.version": "12",
  "cpu.count": "8",
  nix: "false",
  "network.addresses": "192.0.2.1\n192.0.2.2",
  "network.search": "",
  "network.interfaces": "eth0\t02:00\t1500\tup\ttrue\t192.0.2.1/24 192.0.2.2/24\t\neth1.20\t\t9000\tdown\tfalse\t?\t?",
  disks: "sda\t1000\tS1\t\tM 1\tdisk\ttrue\tfalse\tfalse\tgpt\nnvme0n1\t2000\tS2",
};
const facts = shapeFacts(flat);

describe("shapeFacts", () => {
  it("converts each value to its type, and a missing one to null", () => {
    expect(facts).to.deep.include({
      os: { id: "debian", version: "12", codename: null, name: null, like: null },
      nix: false,
      nixos: null,
      hostname: null,
      partitions: null,
    });
    expect(facts["network"]).to.deep.include({ addresses: ["192.0.2.1", "192.0.2.2"], search: [], addresses6: null });
  });

  it("has every name of the catalogue, even when no fact was reported", () => {
    for (const { name } of factCatalogue.filter((fact) => !/\.(N|NAME)\./.test(fact.name)))
      expect(selectFact(shapeFacts({}), name), name).to.equal(null);
  });

  it("turns lines into maps by name, or into lists", () => {
    expect(selectFact(facts, "network.interfaces.eth0")).to.deep.equal({
      name: "eth0",
      mac: "02:00",
      mtu: 1500,
      state: "up",
      physical: true,
      addresses: ["192.0.2.1/24", "192.0.2.2/24"],
      addresses6: [],
    });
    expect(selectFact(facts, "network.interfaces.eth1.20")).to.include({ mac: null, mtu: 9000, addresses: null });
    expect(selectFact(facts, "disks.1")).to.include({ name: "nvme0n1", bytes: 2000, serial: "S2", contents: null });
  });

  it("drops names outside the catalogue and values of another type (S-4)", () => {
    const hostile = shapeFacts({
      "__proto__.x": "1",
      "os.evil": "1",
      more: "1",
      os: "text",
      "cpu.count": "many",
      nix: "perhaps",
      uptimeSeconds: "9".repeat(400),
      hostname: "h".repeat(10_000),
      "network.interfaces": "__proto__\tmac\nconstructor\tmac",
      "network.search": "x\n".repeat(3000),
    });
    expect(Object.keys(hostile)).to.deep.equal(Object.keys(facts));
    expect(selectFact(hostile, "network.search")).to.have.length(2000);
    expect(hostile).to.deep.include({ nix: null, uptimeSeconds: null, hostname: null });
    expect([hostile["os"], selectFact(hostile, "cpu.count")]).to.deep.equal([shapeFacts({})["os"], null]);
    expect(Object.keys(selectFact(hostile, "network.interfaces") as object)).to.deep.equal([
      "__proto__",
      "constructor",
    ]);
    expect(({} as Record<string, unknown>)["mac"]).to.equal(undefined);
  });
});

describe("paths of facts", () => {
  it("are the catalogue's names, with indexes, item names and groups", () => {
    for (const path of ["os.id", "disks.0.bytes", "disks.bytes", "disks.*.bytes", "network.addresses.0"])
      expect(factAt(path), path).not.to.equal(undefined);
    for (const path of ["os", "disks", "disks.0", "network.interfaces", "network.interfaces.eth1.20", "network"])
      expect([isFactPath(path), factAt(path)], path).to.deep.equal([true, undefined]);
    for (const path of ["", "os.idd", "disks.0.size", "os.id.0", "hostname.x", "__proto__", "x.os.id"])
      expect(isFactPath(path), path).to.equal(false);
  });

  it("select one value, or the values of all items", () => {
    const values = (path: string) => factValues(facts, path);
    expect([values("os.id"), values("os.codename")]).to.deep.equal([["debian"], []]);
    expect(values("disks.bytes")).to.deep.equal([1000, 2000]);
    expect([values("disks.*.bytes"), values("disks.1.bytes")]).to.deep.equal([[1000, 2000], [2000]]);
    expect([values("disks.7.bytes"), values("network.addresses")]).to.deep.equal([[], ["192.0.2.1", "192.0.2.2"]]);
    expect(values("network.addresses.1")).to.deep.equal(["192.0.2.2"]);
    expect(values("network.interfaces.eth1.20.mtu")).to.deep.equal([9000]);
    expect(values("network.interfaces.*.mtu")).to.deep.equal([1500, 9000]);
    expect(values("network.interfaces.*.addresses")).to.deep.equal(["192.0.2.1/24", "192.0.2.2/24"]);
  });
});
