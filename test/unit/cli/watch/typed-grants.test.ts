import { expect } from "chai";
import type { NodeModel, RunModel } from "#engine/events/run-model.ts";
import { grantsWanted, ungranted } from "#cli/watch/typed-grants.ts";

/** Nodes, each with one failed step that has this message. */
function refused(messages: Readonly<Record<string, string>>): Pick<RunModel, "nodes"> {
  const nodes = Object.entries(messages).map(([name, message]) => {
    const steps = [{ outcome: "failed", problem: { code: "DISK_HAS_DATA", message } }];
    return [name, { name, steps } as unknown as NodeModel] as const;
  });
  return { nodes: new Map(nodes) };
}

const refusal = "disk /dev/sdb (serial drive-scsi1) holds data; if it may go: --grant drive-scsi1:0123456789abcdef";

describe("the questions about refused disks", () => {
  it("F-18: are asked for each node separately, also for disks with the same serial and contents", () => {
    const asked = grantsWanted(refused({ n1: refusal, n2: refusal }));
    expect(asked.map(({ node, name, grant }) => [node, name, grant])).to.deep.equal([
      ["n1", "drive-scsi1", "drive-scsi1:0123456789abcdef@n1"],
      ["n2", "drive-scsi1", "drive-scsi1:0123456789abcdef@n2"],
    ]);
  });

  it("include a serial number with spaces", () => {
    const [asked] = grantsWanted(refused({ n1: "it holds data: --grant QM 00 1:0123456789abcdef" }));
    expect([asked?.name, asked?.grant]).to.deep.equal(["QM 00 1", "QM 00 1:0123456789abcdef@n1"]);
  });

  it("include no step that succeeded", () => {
    const problem = { code: "DISK_HAS_DATA", message: refusal };
    const steps = [{ outcome: "ok", problem }, { outcome: "failed" }];
    const nodes = new Map([["n1", { name: "n1", steps } as unknown as NodeModel]]);
    expect(grantsWanted({ nodes })).to.deep.equal([]);
  });

  it("leave the problems that no grant solves or that were not granted", () => {
    const other = { code: "DISK_HAS_DATA", message: refusal.replaceAll("scsi1", "scsi11") } as const;
    const busy = { code: "DISK_IN_USE", message: "disk /dev/sdc is in use, which no grant overrides" } as const;
    const one = { code: "DISK_HAS_DATA", message: refusal } as const;
    expect(ungranted([one, other, busy, one], ["drive-scsi1:0123456789abcdef@n1"])).to.deep.equal([other, busy]);
    expect(ungranted([one], [])).to.deep.equal([one]);
  });
});
