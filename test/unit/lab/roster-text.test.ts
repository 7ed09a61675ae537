import { expect } from "chai";
import { parse } from "yaml";
import type { NodeRecord } from "#lab/record.ts";
import { labRosterText } from "#lab/roster-text.ts";

function record(name: string, number: number, disks: readonly string[] = []): NodeRecord {
  return {
    name,
    kind: "debian",
    disks,
    number,
    address: `10.77.0.${number}`,
    id: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11",
    hostKey: "ssh-ed25519 AAAA",
    images: [],
    folder: "/x",
  };
}

const options = { lab: "lab", identityFile: "/k/id" };

describe("the lab's roster", () => {
  it("has address, id, pinned key and disks of each node", () =>
    expect(parse(labRosterText([record("n1", 11, ["1G", "2G"])], options))).to.deep.equal({
      defaults: { user: "root", dc: "DC1", identityFile: "/k/id" },
      nodes: {
        n1: {
          address: "10.77.0.11",
          id: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11",
          roles: ["controller"],
          labels: { lab: "debian" },
          consoleLog: "/x/console.log",
          hostKeys: ["ssh-ed25519 AAAA"],
          disks: [
            { serial: "n1-disk0", use: "volumes" },
            { serial: "n1-disk1", use: "volumes" },
          ],
        },
      },
    }));

  it("makes n1 the controller and the others workers", () => {
    const { nodes } = parse(labRosterText([record("n1", 11), record("n2", 12)], options)) as {
      nodes: Record<string, { roles: string[] }>;
    };
    expect([nodes["n1"]?.roles, nodes["n2"]?.roles]).to.deep.equal([["controller"], ["worker"]]);
  });

  it("is a roster without nodes if none runs", () =>
    expect(parse(labRosterText([], options))).to.have.deep.property("nodes", {}));
});
