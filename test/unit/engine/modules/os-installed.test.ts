import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { unpack } from "#engine/modules/os-installed.ts";
import { fileBlob } from "#engine/step/blob.ts";
import { functions } from "#engine/step/fragments/os-debian.ts";
import { shellsOf } from "#support/shells.ts";

describe("os.installed", () => {
  for (const shell of shellsOf(import.meta.filename))
    it(`M6: tells how far it has unpacked, and of damage, on ${shell}`, () => {
      const folder = mkdtempSync(join(tmpdir(), "kcore-unpack-"));
      try {
        const packed = join(folder, "image.gz");
        const text = unpack(fileBlob({ file: packed, sha256: "0".repeat(64), size: 0 }), 5_000_000).render({
          secret: String,
          blob: () => `'${packed}'`,
        });
        const unpacked = (bytes: Buffer, rate: string) => {
          writeFileSync(packed, bytes);
          const [command = "", ...args] = shell.split(" ");
          // `sleep` does nothing, so that the first note comes at once; the notes end with the unpacking.
          const stand = `K_TMP=${folder}; sleep() { :; }; note() { printf '%s\\n' "$1" >>${folder}/notes; }`;
          return execFileSync(command, [...args, "-c", `${stand}\n${text} | { ${rate} cat; }`], {
            stdio: ["ignore", "pipe", "ignore"],
          });
        };
        const content = randomBytes(600_000);
        const waits = `until [ -s ${folder}/notes ]; do :; done;`;
        expect(unpacked(gzipSync(content), waits).equals(content)).to.equal(true);
        expect(readFileSync(join(folder, "notes"), "utf8")).to.match(/^unpacked \d of 5 MB$/m);
        expect(existsSync(join(folder, "broken"))).to.equal(false);
        unpacked(Buffer.from("no gzip"), "");
        expect(existsSync(join(folder, "broken"))).to.equal(true);
      } finally {
        rmSync(folder, { recursive: true });
      }
    });

  for (const shell of shellsOf(import.meta.filename)) {
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
