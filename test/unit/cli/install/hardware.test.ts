import { expect } from "chai";
import { runTasks, tasksAsLines } from "#base/tasks.ts";
import { readNetworkCards, listDisks } from "#cli/install/hardware.ts";
import type { Exit, Host } from "#engine/transport/host.ts";
import { inventoryOf } from "#support/disk-inventory.ts";
import { problemsOfRejection } from "#support/problems.ts";

/** A host on which every command prints this text. */
function hostPrinting(text: string, exit: Exit = { code: 0 }): Host {
  const refuse = (): never => {
    throw new Error("this fake host has no such call");
  };
  return {
    name: "m",
    fingerprint: "",
    exec: () =>
      Promise.resolve({
        write: refuse,
        bytesTaken: () => 0,
        end: () => undefined,
        stdout: (async function* () {
          yield Buffer.from(text);
        })(),
        stderrTail: () => "blkid: not found\n",
        exit: Promise.resolve(exit),
        close: () => undefined,
      }),
    forward: refuse,
    closed: new Promise(() => undefined),
    close: refuse,
  };
}

describe("the hardware of a machine before its deployment", () => {
  it("has disks with partitions, mounts and links", async () => {
    const line = (words: string): string =>
      ["device", ...words.split(" ").map((word) => (word === "-" ? "" : word.replaceAll("~", " ")))].join("\t");
    const text = [
      line('sda /dev/sda disk 2097152 0 - S1 0x5 A~"Disk" - - gpt id - - - dm-0'),
      line("sda1 /dev/sda1 part 1048576 1048576 sda - - - ext4 a~b - - u data /mnt/a\\040b~[SWAP] -"),
      "link /dev/disk/x sda",
      "end\n",
    ];
    const told: string[] = [];
    const tasks = tasksAsLines((line) => void told.push(line));
    const { devices } = await listDisks(hostPrinting(text.join("\n")), tasks);
    expect(told).to.deep.equal(["listing the disks of m"]);
    const disk = { serial: "S1", wwn: "0x5", model: 'A "Disk"', pttype: "gpt", ptuuid: "id", holders: ["dm-0"] };
    const part = { type: "part", disk: "sda", fstype: "ext4", label: "a b", partuuid: "u", partlabel: "data" };
    const { devices: wanted } = inventoryOf([
      { name: "sda", size: 2, ...disk, links: ["/dev/disk/x"] },
      { name: "sda1", size: 1, start: 1, ...part, mounts: ["/mnt/a b", "[SWAP]"] },
    ]);
    expect(devices).to.deep.equal(wanted);
  });

  it("has network cards with their addresses", async () => {
    const text = [
      "N eth0 06:8d:50:47:b3:c3 up 1500",
      "N lo 00:00:00:00:00:00 unknown 65536",
      "A eth0 inet 192.0.2.1/24",
      "A eth0 inet6 fe80::1/64",
      "",
    ].join("\n");
    const [card, loopback] = await readNetworkCards(hostPrinting(text));
    expect(card).to.deep.equal({
      name: "eth0",
      mac: "06:8d:50:47:b3:c3",
      state: "up",
      mtu: 1500,
      addresses: ["192.0.2.1/24", "fe80::1/64"],
    });
    expect(loopback?.addresses).to.deep.equal([]);
  });

  it("is a problem with host and reason if the listing fails or breaks off", async () => {
    const problemOf = async (host: Host): Promise<string | undefined> =>
      (await problemsOfRejection(listDisks(host, runTasks)))[0];
    expect(await problemOf(hostPrinting("", { code: 127 }))).to.equal(
      "listing the disks failed on m: blkid: not found [PROBE_FAILED]",
    );
    expect(await problemOf(hostPrinting("device\tsda"))).to.equal(
      "listing the disks failed on m: the answer breaks off [PROBE_FAILED]",
    );
  });
});
