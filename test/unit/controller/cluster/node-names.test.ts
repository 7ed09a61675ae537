import { expect } from "chai";
import { watchNodeNames, type NodeNames } from "#controller/cluster/node-names.ts";
import { openRecords, type Records } from "#controller/cluster/records.ts";
import { Refused } from "#controller/cluster/refused.ts";
import { keys } from "#controller/cluster/registers.ts";
import { memoryReplica } from "#support/memory-replica.ts";

const [n1, n2, twin, other] = [
  "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11",
  "6f1c2a52-0000-4f0e-9a50-0d8a3b0f4e12",
  "8b000000-0000-4f0e-9a50-0d8a3b0f4e14",
  "7a000000-0000-4f0e-9a50-0d8a3b0f4e13",
] as const;

describe("the names of nodes", () => {
  let now: number;
  let records: Records;
  let names: NodeNames;
  const expectNode = (id: string, name: string): Promise<string> =>
    records.write([{ key: keys.node(id).expected, value: { name, roles: [], dc: "DC1", source: "roster" } }]);
  const refusalOf = (word: string): Refused => {
    try {
      throw new Error(`found ${names.find(word)}`);
    } catch (error) {
      if (error instanceof Refused) return error;
      throw error;
    }
  };

  beforeEach(async () => {
    now = 1_700_000_000_000;
    records = openRecords(memoryReplica(() => now++ * 1000));
    await expectNode(n1, "n1");
    names = watchNodeNames(records);
    await expectNode(n2, "n2");
    await expectNode(twin, "twin");
    await expectNode(other, "twin");
  });
  afterEach(() => records.replica.stop());

  it("finds a node by id, host name, or the beginning of an id", () => {
    expect(names.find("n1")).to.equal(n1);
    expect(names.find("n2")).to.equal(n2);
    expect(names.find(other)).to.equal(other);
    expect(names.find("7a00")).to.equal(other);
  });

  it("lists the nodes that come after an entry, in the order of their names", () => {
    const idsAfter = (after: string): readonly string[] => Array.from(names.all(after), ({ id }) => id);
    expect(idsAfter("")).to.deep.equal([n1, n2, other, twin]);
    expect(idsAfter(`N2/${n2}`)).to.deep.equal([other, twin]);
    expect(idsAfter(`twin/${other}`)).to.deep.equal([twin]);
  });

  it("refuses an ambiguous word with the candidates", () => {
    expect(refusalOf("twin")).to.include({ code: "NODE_AMBIGUOUS", message: "“twin” fits 2 nodes" });
    expect(refusalOf("twin").detail?.split("\n")).to.have.members([`${twin}  twin`, `${other}  twin`]);
    expect(refusalOf("6f1c2a52").code).to.equal("NODE_AMBIGUOUS");
  });

  it("refuses an unknown word with the nearest name", () => {
    expect(refusalOf("7a0")).to.include({ code: "NODE_UNKNOWN", hint: "kcore get nodes" });
    expect(refusalOf("twni").hint).to.equal("did you mean “twin”?");
  });

  it("S-4: prefers a whole id to another node's equal name, and refuses a name equal to the beginning of an id", async () => {
    await expectNode("ffffffff-0000-4f0e-9a50-0d8a3b0f4e15", "7a000000");
    expect(refusalOf("7a000000").code).to.equal("NODE_AMBIGUOUS");
    await expectNode("ffffffff-0000-4f0e-9a50-0d8a3b0f4e15", other);
    expect(names.find(other)).to.equal(other);
  });

  it("lists the nodes that share a name, regardless of case, the first owner of the name first", async () => {
    await expectNode(n2, "TWIN");
    expect(names.sharing("Twin")).to.deep.equal([twin, other, n2]);
    expect([...names.shared()]).to.deep.equal([["twin", [twin, other, n2]]]);
    expect(names.sharing("n1")).to.deep.equal([n1]);
    expect(names.find("TWIN")).to.equal(n2);
  });

  it("follows renames and removals", async () => {
    await expectNode(twin, "single");
    expect(names.find("single")).to.equal(twin);
    expect(names.find("twin")).to.equal(other);
    await records.write([
      { key: keys.node(n1).expected, value: undefined },
      { key: keys.node(n1).removed, value: { at: "", by: "operator ann", reason: "" } },
    ]);
    expect([refusalOf("n1").code, refusalOf(n1).code]).to.deep.equal(["NODE_UNKNOWN", "NODE_UNKNOWN"]);
    expect([...names.shared()]).to.deep.equal([]);
  });
});
