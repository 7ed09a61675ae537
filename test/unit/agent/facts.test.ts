import { execFileSync } from "node:child_process";
import { utimesSync, writeFileSync } from "node:fs";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { AgentConfig } from "#agent/agent-config.ts";
import { isSameMachine, readDisks, readNics, readStorage, readUsage, type MachineFacts } from "#agent/facts.ts";
import { folderOfEachTest } from "../../support/temp-dir.ts";

describe("the facts that an agent reports", () => {
  const put = async (path: string, text: string): Promise<void> => {
    const file = root(path);
    await mkdir(join(file, ".."), { recursive: true });
    await writeFile(file, text);
  };
  const root = folderOfEachTest("sysfs");

  it("has disks with size, model, serial number and whether they are in use", async () => {
    await put("sys/block/sda/size", "2048\n");
    await put("sys/block/sda/device/model", "QEMU HARDDISK   \n");
    await put("sys/block/sda/queue/rotational", "1\n");
    await put("sys/block/sda/sda1/partition", "1\n");
    await put("sys/block/nvme0n1/size", "4096\n");
    await put("sys/block/nvme0n1/device/serial", "S3Z8NB0K\n");
    await put("sys/block/vdb/size", "8\n");
    await put("sys/block/vdb/dev", "254:16\n");
    await put("proc/self/mountinfo", "36 35 254:16 / /mnt rw - ext4 /dev/vdb rw\n");
    expect(await readDisks(root())).to.deep.equal([
      { path: "/dev/nvme0n1", size: 2_097_152, serial: "S3Z8NB0K", type: "nvme", used: false },
      { path: "/dev/sda", size: 1_048_576, model: "QEMU HARDDISK", type: "hdd", used: true },
      { path: "/dev/vdb", size: 4096, type: "virtual", used: true },
    ]);
  });

  it("has no loop devices, other virtual block devices or empty drives", async () => {
    for (const name of ["loop0", "dm-0", "sr0", "ram1", "md127"]) await put(`sys/block/${name}/size`, "2048\n");
    await put("sys/block/sdb/size", "0\n");
    expect(await readDisks(root())).to.deep.equal([]);
  });

  it("has the name of an LVM volume group or ZFS pool, and the capacity of a plain folder", async () => {
    const lvm = AgentConfig.parse({ storage: { backend: "lvm", lvm: { vgName: "vg_kcore", lvPrefix: "kc-" } } });
    expect(await readStorage(lvm, root())).to.deep.equal({
      backend: "lvm",
      volumeGroup: "vg_kcore",
      volumePrefix: "kc-",
      disks: [],
    });
    const zfs = AgentConfig.parse({ storage: { backend: "zfs", zfs: { poolName: "tank0" } } });
    expect(await readStorage(zfs, root())).to.deep.equal({ backend: "zfs", pool: "tank0", disks: [] });
    const folder = root("not", "there", "yet");
    const plain = await readStorage(AgentConfig.parse({ storage: { filesystemVolumeDir: folder } }), root());
    expect(plain.capacity).to.be.greaterThan(0);
  });

  it("has network interfaces without loopback, also interfaces without an address", async () => {
    await put("sys/class/net/eth0/address", "52:54:00:12:34:56\n");
    await put("sys/class/net/eth1/address", "52:54:00:12:34:57\n");
    await put("sys/class/net/lo/address", "00:00:00:00:00:00\n");
    const addresses = { eth0: [{ cidr: "192.0.2.5/24", address: "192.0.2.5" }], lo: [] };
    expect(await readNics(root(), () => addresses as never)).to.deep.equal([
      { name: "eth0", mac: "52:54:00:12:34:56", addresses: ["192.0.2.5/24"] },
      { name: "eth1", mac: "52:54:00:12:34:57", addresses: [] },
    ]);
  });

  it("describes the same machine when only free space differs, and another when a disk is new", () => {
    const facts = (free: number, disks: number): MachineFacts => ({
      nodeId: "n",
      hostname: "n",
      cpu: 1,
      memory: 1,
      labels: {},
      dc: "DC1",
      roles: [],
      version: "1",
      storage: { free, disks: Array.from({ length: disks }, () => ({ path: "/dev/sda", size: 1 })) },
    });
    expect(isSameMachine(facts(1, 1), facts(2, 1))).to.equal(true);
    expect(isSameMachine(facts(1, 1), facts(1, 2))).to.equal(false);
  });

  it("has the use of the fuller of two file systems as df counts it, and skips a missing path", async () => {
    const { diskUsed = 0, diskSize = 0, load, memoryUsed } = await readUsage("/nowhere", "/nowhere");
    const [, used, free] = execFileSync("df", ["-B1", "--output=target,used,avail", "/"], { encoding: "utf8" })
      .trim()
      .split("\n")
      .slice(-1)
      .join()
      .split(/\s+/) as [string, string, string];
    // Other processes write meanwhile.
    expect(diskUsed).to.be.closeTo(Number(used), 2 ** 30);
    expect(diskSize).to.be.closeTo(Number(used) + Number(free), 2 ** 30);
    expect(load).to.be.a("number");
    expect(memoryUsed).to.be.above(0);
    const both = await readUsage("/dev", "/nowhere");
    expect((both.diskUsed ?? 0) / (both.diskSize ?? 1)).to.be.at.least(diskUsed / diskSize - 0.02);
  });

  it("has the age in seconds of an order that the updater has not taken for long", async () => {
    const inbox = root("inbox.json");
    expect((await readUsage("/nowhere", inbox)).orderUntaken).to.equal(undefined);
    writeFileSync(inbox, "{}");
    expect((await readUsage("/nowhere", inbox)).orderUntaken).to.equal(undefined);
    utimesSync(inbox, Date.now() / 1000 - 100, Date.now() / 1000 - 100);
    expect((await readUsage("/nowhere", inbox)).orderUntaken).to.be.within(99, 160);
  });
});
