import { execFileSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { osInstalled } from "#engine/modules/os-installed.ts";
import { functions } from "#engine/step/fragments/os-debian.ts";
import { blobOf } from "#engine/step/blob.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

// A file whose hash is right: it is compared when it is read.
const { sha256 } = blobOf(readFileSync(import.meta.filename));
const image = { file: import.meta.filename, sha256, size: 150_000_000 };
const on = { disk: { serial: "S1" }, image, hostname: "n1" };

// What it does to a machine is tried on one that boots afterwards: test/lab/vm-os-disk.test.ts.
describe("os.installed", () => {
  it("wants the system there, and says in its progress how much it sends", () => {
    const { want, apply } = stepOf(osInstalled, on);
    expect(want).to.deep.equal({ system: "installed" });
    expect(apply?.masked).to.contain("'unpacking 150 MB'");
  });

  it("writes the boot loader of the first sector last of all", () => {
    const text = stepOf(osInstalled, on).apply?.masked ?? "";
    const places = ["update-grub", "x86_64-efi", "sync\nin_target grub-install --target=i386-pc"].map((part) =>
      text.lastIndexOf(part),
    );
    expect(places).to.deep.equal(places.toSorted((a, b) => a - b));
    expect(Math.min(...places)).to.be.greaterThan(text.indexOf("machine-id"));
  });

  it("touches no container that is not marked as unfinished, and marks it as finished behind the boot loader", () => {
    const text = stepOf(osInstalled, { ...on, encrypted: true }).apply?.masked ?? "";
    const places = [
      "is not marked as unfinished",
      "has no recovery key",
      // luks.root takes a boot loader for the sign of a system that starts.
      'dd if=/dev/zero of="$disk" bs=440 count=1',
      "mkfs.ext4",
      "update-initramfs",
      "in_target update-grub",
      "--target=i386-pc",
      'cryptsetup config --label kcore-system "$container" && sync && rm',
    ].map((part) => text.indexOf(part));
    expect(places).to.deep.equal(places.toSorted((a, b) => a - b));
    expect(places[0]).to.be.greaterThan(0);
    expect(stepOf(osInstalled, on).apply?.masked).to.not.match(/mkfs|cryptsetup|update-initramfs|of="\$disk"/);
  });

  it("refuses names, keys and kernel parameters that cannot be", () => {
    const accepts = (args: object): boolean => osInstalled.args.safeParse({ ...on, ...args }).success;
    expect([accepts({ hostname: "n1.example.org" }), accepts({ kernelParameters: ["console=ttyS0,115200"] })])
      .to.deep //
      .equal([true, true]);
    for (const args of [
      { hostname: "N_1" },
      { hostname: "-n" },
      { kernelParameters: ["a b"] },
      { kernelParameters: ["'"] },
      { kernelParameters: ['"'] },
      { kernelParameters: ["a=$(id)"] },
      { kernelParameters: ["a=`id`"] },
      { authorizedKeys: ["ssh-ed25519 AAAA\nssh-rsa BBBB"] },
    ])
      expect(accepts(args), JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`refuses where the machine has no such disk, on ${shell}`, async () => {
      const { problem } = await runStepOn(shell, stepOf(osInstalled, on), { bin: { lsblk: "exit 1" } });
      expect(problem?.code).to.equal("DISK_NOT_FOUND");
    });

    // BusyBox takes its own ip, whatever stands on PATH.
    if (shell.startsWith("busybox")) continue;
    describe(`carries the network over, on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-network-"));
      });
      afterEach(() => rmSync(folder, { recursive: true }));

      /** What network_of says of a card with these lines of ip(8); the loopback card has a hardware address, too. */
      const networkOf = (addresses: readonly string[], route: string): string[] => {
        writeFileSync(
          join(folder, "ip"),
          `#!/bin/sh
case "$*" in
  "-o addr show dev lo scope global") printf '%s\\n' ${addresses.map((line) => `'1: lo ${line}'`).join(" ")} ;;
  "route show default dev lo") echo '${route}' ;;
  "-6 route show default dev lo") echo 'default via fe80::1 proto ra metric 1024' ;;
  *) exit 64 ;;
esac
`,
        );
        chmodSync(join(folder, "ip"), 0o755);
        const [command = "", ...args] = shell.split(" ");
        const text = `PATH=${folder}:$PATH\n${functions.masked}\nnetwork_of lo`;
        return execFileSync(command, [...args, "-c", text], { encoding: "utf8" })
          .trim()
          .split("\n")
          .filter((line) => !line.startsWith("DNS="));
      };
      const head = ["[Match]", "MACAddress=00:00:00:00:00:00", "Type=ether", "[Network]"];

      it("of fixed addresses with their gateway", () => {
        const addresses = [
          "inet 192.0.2.11/24 brd 192.0.2.255 scope global lo",
          "inet6 2001:db8::11/64 scope global",
          "inet6 2001:db8::abcd/64 scope global dynamic mngtmpaddr",
        ];
        expect(networkOf(addresses, "default via 192.0.2.1 onlink")).to.deep.equal([
          ...head,
          "Address=192.0.2.11/24",
          "Address=2001:db8::11/64",
          "Gateway=192.0.2.1",
        ]);
      });

      it("of an address that DHCP gave", () => {
        const addresses = ["inet 192.0.2.50/24 metric 100 brd 192.0.2.255 scope global dynamic lo"];
        expect(networkOf(addresses, "default via 192.0.2.1 proto dhcp src 192.0.2.50")).to.deep.equal([
          ...head,
          "DHCP=ipv4",
        ]);
      });
    });
  }
});
