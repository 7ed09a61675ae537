import { expect } from "chai";
import {
  DiskId,
  diskGuid,
  diskName,
  filesystemUuid,
  partitionGuid,
  plainWwn,
  shownUuid,
} from "#engine/step/disk-names.ts";
import { uuidOf } from "#engine/step/uuid.ts";

const node = { node: "n1", nodeId: "6f1c2a52-7c1e-4f0e-9a50-0d8a3b0f4e11" };
const disk = { serial: "S3Z8NB0K" };

describe("the UUIDs of kcore's tables, partitions and file systems", () => {
  it("are of version 5 and never change", () => {
    expect(uuidOf("a", "b")).to.match(/^[0-9a-f]{8}-[0-9a-f]{4}-5[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
    expect(diskGuid(node, disk)).to.equal("de5f77f2-1edc-5ade-95a9-2c6a2ed30a8b");
    expect(partitionGuid(node, { disk, partition: "data" })).to.equal("870d132b-2c5d-5067-90c4-df6cf7a91c6a");
  });

  it("differ by node, by disk and by partition, so that a disk of another node is foreign (F-18)", () => {
    const guids = [
      partitionGuid(node, { disk, partition: "data" }),
      partitionGuid(node, { disk, partition: "data2" }),
      partitionGuid(node, { disk: { wwn: "S3Z8NB0K" }, partition: "data" }),
      partitionGuid({ ...node, nodeId: "other" }, { disk, partition: "data" }),
      diskGuid(node, disk),
    ];
    expect(new Set(guids).size).to.equal(guids.length);
  });

  it("depend on where the parts of a name are separated", () =>
    expect(uuidOf("ab", "c")).not.to.equal(uuidOf("a", "bc")));

  it("plainWwn normalizes every spelling of a WWN", () => {
    const spellings = ["naa.5000C500a1", "eui.5000c500a1", "wwn-0x5000c500a1", "0x5000C500A1", "5000c500a1"];
    for (const spelling of spellings) expect(plainWwn(spelling), spelling).to.equal("5000c500a1");
  });

  it("shorten to a volume id for vfat", () => {
    const uuid = filesystemUuid("e55e0dd0-6a11-5fd2-8a8b-5e7b6a7e3d5c");
    expect(shownUuid(uuid, "ext4")).to.equal(uuid);
    expect(shownUuid(uuid, "vfat")).to.equal(`${uuid.slice(0, 4)}-${uuid.slice(4, 8)}`.toUpperCase());
  });
});

describe("a disk's name", () => {
  it("is exactly one of serial, wwn, byId and busPath, also in a roster's entry", () => {
    expect(DiskId.safeParse({ serial: "x", use: "volumes" }).success).to.equal(true);
    expect(DiskId.safeParse({ serial: "x", wwn: "y" }).success).to.equal(false);
    expect(DiskId.safeParse({}).success).to.equal(false);
  });

  it("may be its model, its size or both, without another name", () => {
    expect(diskName(DiskId.parse({ busPath: "pci-0000:00:1f.2-ata-1" })).kind).to.equal("busPath");
    expect(diskName(DiskId.parse({ model: "Samsung SSD 980" }))).to.deep.equal({
      kind: "model",
      value: "Samsung SSD 980",
    });
    expect(diskName(DiskId.parse({ size: "2G" }))).to.deep.equal({ kind: "size", value: "2147483648" });
    const both = { kind: "size and model", value: "2147483648 Samsung SSD 980" };
    expect(diskName(DiskId.parse({ size: "2G", model: "Samsung SSD 980" }))).to.deep.equal(both);
    expect(DiskId.safeParse({ serial: "x", size: "2G" }).success).to.equal(false);
    expect(DiskId.safeParse({ busPath: "x", model: "y" }).success).to.equal(false);
  });

  it("is never a device name or a path", () => {
    expect(DiskId.safeParse({ byId: "../sda" }).success).to.equal(false);
    expect(DiskId.safeParse({ byId: ".." }).success).to.equal(false);
    expect(DiskId.safeParse({ device: "/dev/sda" }).success).to.equal(false);
  });
});
