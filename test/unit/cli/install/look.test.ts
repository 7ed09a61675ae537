import { expect } from "chai";
import { lookAtCards, lookAtDisks } from "#cli/install/look.ts";
import type { Exit, Host } from "#engine/transport/host.ts";
import { problemsOfRejection } from "#support/problems.ts";

/** A host on which every command prints this. */
function hostThatSays(text: string, exit: Exit = { code: 0 }): Host {
  const refuse = (): never => {
    throw new Error("nobody taught this host that");
  };
  return {
    name: "m",
    fingerprint: "",
    exec: () =>
      Promise.resolve({
        write: refuse,
        taken: () => 0,
        end: () => undefined,
        stdout: (async function* () {
          yield Buffer.from(text);
        })(),
        stderrTail: () => "lsblk: not found\n",
        exit: Promise.resolve(exit),
        close: () => undefined,
      }),
    forward: refuse,
    closed: new Promise(() => undefined),
    close: refuse,
  };
}

describe("what a machine shows of itself before it is deployed", () => {
  it("lists disks as lsblk tells them, with odd characters", async () => {
    const line = (name: string, type: string, rest: string): string =>
      `NAME="${name}" PATH="/dev/${name}" TYPE="${type}" SIZE="1024" FSTYPE="" MOUNTPOINT="/mnt/a\\x20b" ${rest}`;
    const text = [
      line("sda", "disk", 'MODEL="Fast \\x22Disk\\x22 " SERIAL="S1" WWN="0x5"'),
      line("sda1", "part", 'MODEL="" SERIAL="" WWN=""'),
      "",
    ].join("\n");
    const [disk, part] = await lookAtDisks(hostThatSays(text));
    expect(disk).to.deep.equal({
      name: "sda",
      path: "/dev/sda",
      type: "disk",
      size: 1024,
      fstype: "",
      mountpoint: "/mnt/a b",
      model: 'Fast "Disk"',
      serial: "S1",
      wwn: "0x5",
    });
    expect(part).to.include({ type: "part", serial: "" });
  });

  it("lists network cards with their addresses", async () => {
    const text = [
      "N eth0 06:8d:50:47:b3:c3 up 1500",
      "N lo 00:00:00:00:00:00 unknown 65536",
      "A eth0 inet 192.0.2.1/24",
      "A eth0 inet6 fe80::1/64",
      "",
    ].join("\n");
    const [card, loopback] = await lookAtCards(hostThatSays(text));
    expect(card).to.deep.equal({
      name: "eth0",
      mac: "06:8d:50:47:b3:c3",
      state: "up",
      mtu: 1500,
      addresses: ["192.0.2.1/24", "fe80::1/64"],
    });
    expect(loopback?.addresses).to.deep.equal([]);
  });

  it("says what failed, and where", async () => {
    const [problem] = await problemsOfRejection(lookAtDisks(hostThatSays("", { code: 127 })));
    expect(problem).to.equal("lsblk failed on m: lsblk: not found [PROBE_FAILED]");
  });
});
