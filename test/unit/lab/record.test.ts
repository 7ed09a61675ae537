import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { listLabs } from "#lab/lab.ts";
import { findLabPlace } from "#lab/place.ts";
import { makeRecords, readNodeRecord, readNodeRecords, type NodeSpec } from "#lab/record.ts";
import { codeOf, rejectionOf } from "#support/rejection.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const images = {
  debian: "/i/d",
  releases: {},
  layer: "/i/l",
  nix: "/i/n",
  busybox: "/i/b",
  packages: "/i/p",
  vm: "/i/v",
  golden: "/i/g",
  zfs: "/images/zfs",
  more: "",
};

describe("a lab's records", () => {
  const home = folderOfEachTest("records");

  it("are in the order of addresses, without nodes whose creation was interrupted", async () => {
    const place = await findLabPlace({ home: home() });
    for (const [name, number] of [
      ["b1", 101],
      ["n2", 12],
      ["n1", 11],
    ] as const) {
      await mkdir(join(place.folder, "nodes", name), { recursive: true });
      await writeFile(join(place.folder, "nodes", name, "node.json"), JSON.stringify({ name, number }));
    }
    await mkdir(join(place.folder, "nodes", "n3"));
    expect((await readNodeRecords(place)).map((record) => record.name)).to.deep.equal(["n1", "n2", "b1"]);
  });

  it("of all labs are listed with the lab's name", async () => {
    expect(await listLabs(home())).to.deep.equal([]);
    for (const name of ["records", "records1", "records2"]) {
      const place = await findLabPlace({ home: home(), name });
      const node = { name: "n1", kind: "debian", number: 11, address: `${place.net}.11`, id: name, disks: [] };
      await mkdir(join(place.folder, "nodes", "n1"), { recursive: true });
      await writeFile(join(place.folder, "nodes", "n1", "node.json"), JSON.stringify(node));
    }
    const found = await listLabs(home());
    expect(found.map(({ lab, name, id, running }) => ({ lab, name, id, running }))).to.deep.equal([
      { lab: "records", name: "n1", id: "records", running: false },
      { lab: "records1", name: "n1", id: "records1", running: false },
      { lab: "records2", name: "n1", id: "records2", running: false },
    ]);
  });

  it("refuse an unknown node with a hint about existing ones", async () => {
    const [problem] = (await rejectionOf(readNodeRecord(await findLabPlace({ home: home() }), "n1"))).problems;
    expect(problem).to.deep.include({ code: "LAB_NODE_UNKNOWN", hint: "no node is up: start with “kcore lab up”" });
  });

  for (const [what, spec] of [
    ["a path as a name", { name: "../n1", kind: "debian", disks: [] }],
    ["a name that is no host name", { name: "n_1", kind: "debian", disks: [] }],
    ["a live system on a container", { name: "n1", kind: "debian", disks: ["1G"], live: true }],
    ["a live system without a disk to install on", { name: "v1", kind: "vm", disks: [], live: true }],
    ["a disk of no size", { name: "n1", kind: "debian", disks: ["0G"] }],
    ["ZFS in a container", { name: "n1", kind: "debian", disks: [], zfs: true }],
    ["Nix in a virtual machine", { name: "v1", kind: "vm", disks: [], nix: true }],
    ["a TPM in a container", { name: "n1", kind: "debian", disks: [], tpm: true }],
    ["a TPM in a live system", { name: "v1", kind: "vm", disks: ["1G"], live: true, tpm: true }],
    ["a root size in another unit", { name: "n1", kind: "debian", disks: [], root: "8 GiB" }],
  ] as const satisfies readonly (readonly [string, NodeSpec])[]) {
    it(`refuse ${what}`, async () => {
      const place = await findLabPlace({ home: home() });
      expect(await codeOf(makeRecords(place, [spec], images))).to.equal("USAGE");
    });
  }
});
