import { readFileSync } from "node:fs";
import { hostname } from "node:os";
import { expect } from "chai";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import { factAt, selectFact } from "#engine/facts/paths.ts";
import { shapeFacts, type NodeFacts } from "#engine/facts/shape.ts";
import { diskInventoryText, readDiskInventory } from "#engine/program/disk-inventory.ts";
import { factShells, gatherFacts, runInNamespaces, type GatheredLines } from "#support/gather-facts.ts";

/** The names of the lines that facts.sh may print: one value each, or a list. */
const lines = [...new Set(factCatalogue.map(({ name }) => name.replace(/\.(N|NAME)\..*$/, "")))];

/** Every value with its path; a list of texts is one value. */
function leaves(value: unknown, path = ""): readonly (readonly [string, unknown])[] {
  if (typeof value !== "object" || value === null) return [[path, value]];
  if (Array.isArray(value) && value.every((item) => typeof item !== "object")) return [[path, value]];
  return Object.entries(value).flatMap(([key, item]) => leaves(item, path === "" ? key : `${path}.${key}`));
}

/** Files of one line each, below a folder, by path. */
const filesIn = (folder: string, files: Readonly<Record<string, string>>): Readonly<Record<string, string>> =>
  Object.fromEntries(Object.entries(files).map(([name, text]) => [`${folder}/${name}`, `${text}\n`]));

/** Block devices of a machine with udev or without: sda with partitions, an NVMe disk, a mapping, and devices of other kinds. */
const machine = {
  files: {
    ...filesIn("block/sda", { size: "3907029168", dev: "8:0", ro: "0", removable: "0", "queue/rotational": "1" }),
    ...filesIn("block/sda", { "device/model": "ST2000NM0008    " }),
    ...filesIn("block/sda/sda1", { partition: "1", size: "2097152", dev: "8:1" }),
    ...filesIn("block/nvme0n1", { size: "1953525168", dev: "259:0", ro: "0", removable: "0", "queue/rotational": "0" }),
    ...filesIn("block/nvme0n1", { wwid: "eui.0025385b71b0a1c2", "device/model": "a \\ back slash" }),
    ...filesIn("block/nvme0n1", { "device/serial": "S3Z8NB0K   " }),
    ...filesIn("block", { "dm-0/size": "2048", "dm-0/dev": "253:0", "gone/size": "2048", "sr0/size": "2048" }),
    ...filesIn("block", { "sdz/size": "0" }),
    "udev/data/b8:0": "S:disk/by-id/x\nE:ID_SERIAL_SHORT=ZDH1\nE:ID_WWN=0x5000c500a1b2c3d4\nE:ID_PART_TABLE_TYPE=gpt\n",
    "udev/data/b8:1": "E:ID_FS_TYPE=ext4\nE:ID_FS_UUID=0b4f\nE:ID_FS_LABEL=a=b\n",
    "udev/data/b259:0": "E:ID_FS_TYPE=LVM2_member\nE:ID_FS_UUID=lv\n",
  },
  before: `mount --bind FOLDER/block /sys/block
    mkdir -p /run/udev && mount -t tmpfs none /run && mkdir /run/udev && cp -r FOLDER/udev/. /run/udev
    mount -t tmpfs none /dev && mknod -m 666 /dev/null c 1 3
    for n in sda sda1 nvme0n1 dm-0 sr0 sdz; do mknod /dev/$n b 7 99; done`,
};

const network = `ip link set lo up
  ip link add k0 type veth peer name k1
  ip addr add 192.0.2.11/24 dev k0
  ip addr add 198.51.100.7/32 dev k1
  ip -6 addr add 2001:db8:0:0:1::11/64 dev k0 nodad
  ip link set k0 up
  ip link set k1 mtu 1400 up
  ip route add default via 192.0.2.129 dev k0 metric 200
  ip route add default via 192.0.2.130 dev k0 metric 300
  ip route add 203.0.113.64/26 dev k1
  ip -6 route add default via 2001:db8::1:0:0:fe dev k0 onlink`;

describe("facts.sh", () => {
  for (const shell of factShells)
    describe(`on ${shell}`, () => {
      let gathered: GatheredLines;
      let facts: NodeFacts;
      before(() => {
        gathered = gatherFacts(shell);
        facts = shapeFacts(gathered.flat);
      });

      it("prints only facts of the catalogue", () =>
        expect(Object.keys(gathered.flat).filter((name) => !lines.includes(name))).to.deep.equal([]));

      it("prints every fact that all machines have, with a value of its type", () => {
        const always =
          /^(hostname|bootId|uptimeSeconds|arch|kernel\.|os\.id|os\.name|init|nix|security|firmware|virtualization\.type|cpu\.count|memory|swap|clock\.(epoch|utc)|root\.)/;
        expect(leaves(facts).filter(([path, value]) => value === null && always.test(path))).to.deep.equal([]);
        for (const [path, value] of leaves(facts)) {
          const type = factAt(path)?.type;
          const is = Array.isArray(value) ? "texts" : typeof value === "number" ? "integer" : typeof value;
          if (value !== null && (value as unknown[]).length !== 0)
            expect(is.replace("string", "text"), path).to.equal(type);
        }
        expect(facts).to.include({ hostname: hostname(), uptimeSeconds: Number(gathered.flat["uptimeSeconds"]) });
        expect(selectFact(facts, "memory.totalKiB")).to.equal(
          Number(/MemTotal: *(\d+)/.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]),
        );
      });

      it("starts at most 7 processes: uname, date, readlink, ip, df, awk, and maybe blkid", () =>
        expect(gathered.processes).to.be.within(5, 7));

      it("reads disks from udev's database, without further processes", () => {
        const { flat, processes } = gatherFacts(shell, machine);
        expect(processes).to.be.at.most(gathered.processes);
        const { disks, partitions } = shapeFacts(flat);
        const unknown = { rotational: null, removable: null, readOnly: null, contents: null };
        const known = { type: "disk", removable: false, readOnly: false };
        expect(disks).to.deep.equal([
          { name: "dm-0", bytes: 1 << 20, serial: null, wwn: null, model: null, type: "mapped", ...unknown },
          {
            name: "nvme0n1",
            bytes: 1_000_204_886_016,
            serial: "S3Z8NB0K",
            wwn: "eui.0025385b71b0a1c2",
            ...known,
            model: "a / back slash",
            rotational: false,
            contents: "LVM2_member",
          },
          {
            name: "sda",
            bytes: 2_000_398_934_016,
            serial: "ZDH1",
            wwn: "0x5000c500a1b2c3d4",
            ...known,
            model: "ST2000NM0008",
            rotational: true,
            contents: "gpt",
          },
        ]);
        expect(partitions).to.deep.equal([
          { name: "sda1", disk: "sda", bytes: 1 << 30, contents: "ext4", uuid: "0b4f", label: "a=b" },
        ]);
      });

      it("asks blkid about disks where there is no udev", () => {
        const blkid =
          '#!/bin/sh\n[ "$*" = "/dev/dm-0 /dev/nvme0n1 /dev/sda /dev/sda1" ] || exit\necho \'/dev/sda1: LABEL="a b" UUID="0b4f" TYPE="ext4"\'\necho \'/dev/nvme0n1: PTTYPE="gpt"\'\n';
        const { flat } = gatherFacts(shell, {
          files: { ...machine.files, "bin/blkid": blkid },
          before: `${machine.before}\nrm -r /run/udev\nchmod +x FOLDER/bin/blkid\nPATH=FOLDER/bin:$PATH`,
        });
        const facts = shapeFacts(flat);
        expect([0, 1, 2].map((at) => selectFact(facts, `disks.${at}.contents`))).to.deep.equal([
          null,
          "gpt",
          "partitions",
        ]);
        expect(selectFact(facts, "partitions.0")).to.include({ contents: "ext4", uuid: "0b4f", label: "a b" });
      });

      it("disk-inventory.sh lists the same devices with their contents, mounts and holders", () => {
        const used = {
          ...filesIn("block/dm-0", { "dm/name": "vg-lv", "dm/uuid": "LVM-x" }),
          ...filesIn("block/sda/sda1", { start: "2048" }),
          ...filesIn("block/loop0", { size: "8", dev: "7:0", "loop/backing_file": "/dev/sda" }),
          ...filesIn("class/sda1/holders", { "dm-0": "" }),
          mountinfo:
            "1 0 8:1 / /srv/a\\040b rw - ext4 x rw\n2 0 0:9 / /pool rw shared:1 - btrfs /dev/mapper/vg-lv rw\n",
          swaps: "Filename Type\n/dev/nvme0n1 partition\n",
          "bin/blkid": `#!/bin/sh\ncase "$*" in\n'-p /dev/sda1') echo '/dev/sda1: LABEL="a b" TYPE="xfs" PART_ENTRY_UUID="AB" PART_ENTRY_NAME="data"' ;;\n'-p /dev/loop0') echo 'blkid: /dev/loop0: ambivalent result (x)' ;;\nesac\n`,
        };
        const before = `${machine.before}\nmknod /dev/loop0 b 7 99; ln -s sda /dev/first; mount --bind FOLDER/class /sys/class/block\nchmod +x FOLDER/bin/blkid; PATH=FOLDER/bin:$PATH`;
        const text = diskInventoryText().replaceAll("/proc/self/mountinfo", "FOLDER/mountinfo");
        const printed = runInNamespaces(shell, text.replaceAll("/proc/swaps", "FOLDER/swaps"), {
          files: { ...machine.files, ...used },
          before,
        });
        const rows = readDiskInventory(printed)?.devices.map((one) => {
          const { name, type, size, start, disk, fstype, label, pttype, partuuid, partlabel } = one;
          return [[name, type, size, start, disk, fstype, label, pttype, partuuid, partlabel].join(":"), one] as const;
        });
        expect(rows?.map(([row, { mounts, holders, links }]) => [row, ...mounts, ...holders, ...links])).to.deep.equal([
          ["dm-0:lvm:1048576:0::::::", "/pool"],
          ["loop0:loop:4096:0::ambivalent::::"],
          ["nvme0n1:disk:1000204886016:0::LVM2_member::::", "[SWAP]"],
          ["sda:disk:2000398934016:0::::gpt::", "loop0", "/dev/first"],
          ["sda1:part:1073741824:1048576:sda:xfs:a b::ab:data", "/srv/a b", "dm-0"],
        ]);
        expect(rows?.[3]?.[1]).to.include({ serial: "ZDH1", wwn: "0x5000c500a1b2c3d4", model: "ST2000NM0008" });
      });

      it("reads addresses and routes as ip(8) prints them", () => {
        const { network: found } = shapeFacts(gatherFacts(shell, { before: network }).flat) as {
          network: NodeFacts & { interfaces: Record<string, Record<string, unknown>> };
        };
        expect(found).to.deep.include({
          interface: "k0",
          gateway: "192.0.2.129",
          gateway6: "2001:db8::1:0:0:fe",
          addresses: ["192.0.2.11", "198.51.100.7"],
          addresses6: ["2001:db8::1:0:0:11"],
          routes: [
            { destination: "0.0.0.0/0", gateway: "192.0.2.129", interface: "k0", metric: 200 },
            { destination: "0.0.0.0/0", gateway: "192.0.2.130", interface: "k0", metric: 300 },
            { destination: "192.0.2.0/24", gateway: null, interface: "k0", metric: 0 },
            { destination: "203.0.113.64/26", gateway: null, interface: "k1", metric: 0 },
          ],
        });
        expect(found.interfaces["k1"]).to.deep.include({ mtu: 1400, physical: false, addresses: ["198.51.100.7/32"] });
        expect(found.interfaces["lo"]).to.deep.include({ addresses: ["127.0.0.1/8"], addresses6: ["::1/128"] });
      });

      // BusyBox has an ip of its own.
      const without = shell.startsWith("busybox") ? it.skip : it;
      without("leaves addresses null where there is no ip(8), and gathers all other facts", () => {
        const tools = ["awk", "uname", "date", "df", "readlink", "mksh", "bash", "busybox", "dash", "sh"];
        const { network: found } = shapeFacts(
          gatherFacts(shell, {
            before: `${network}\nmkdir FOLDER/bin\nfor n in ${tools.join(" ")}; do ln -s "$(command -v $n)" FOLDER/bin/$n; done\nPATH=FOLDER/bin`,
          }).flat,
        ) as { network: NodeFacts & { interfaces: Record<string, unknown> } };
        expect(found).to.deep.include({ interface: "k0", gateway: "192.0.2.129", addresses: null, addresses6: null });
        expect(found.interfaces["k0"]).to.include({ addresses: null, addresses6: null });
      });

      it("recognizes a container, and reads os-release with its quotes", () => {
        const { flat } = gatherFacts(shell, {
          files: { container: "systemd-nspawn", release: "ID=alpine\nVERSION_ID=\"3.20\"\nPRETTY_NAME='Alpine'\n" },
          before:
            "mount --bind FOLDER/release /etc/os-release && mount -t tmpfs none /run && mkdir /run/systemd && cp FOLDER/container /run/systemd/container",
        });
        const { os, virtualization } = shapeFacts(flat);
        expect(virtualization).to.deep.equal({ type: "container", name: "systemd-nspawn" });
        expect(os).to.deep.equal({ id: "alpine", version: "3.20", codename: null, name: "Alpine", like: null });
      });
    });

  it("prints the same facts with BusyBox's awk", () => {
    const before = 'mkdir FOLDER/bin && ln -s "$(command -v busybox)" FOLDER/bin/awk\nPATH=FOLDER/bin:$PATH';
    const [usual, busy] = [machine.before, `${machine.before}\n${before}`].map(
      (given) => gatherFacts("dash", { files: machine.files, before: `${network}\n${given}` }).flat,
    );
    const steady = (flat: GatheredLines["flat"] = {}) =>
      Object.entries(flat).filter(([name]) => !factAt(name)?.isVolatile && name !== "network.interfaces");
    expect(steady(busy)).to.deep.equal(steady(usual));
  });
});
