import { execFileSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { gzipSync } from "node:zlib";
import { expect } from "chai";
import { unpackImage } from "#engine/modules/os-installed.ts";
import { fileBlob } from "#engine/step/blob.ts";
import { liveFunctions } from "#engine/step/fragments/os-debian.ts";
import { unlockFunctions } from "#engine/step/fragments/os-unlock.ts";
import { shellsOf } from "#support/shells.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

for (const shell of shellsOf(import.meta.filename))
  describe(`functions of os.installed and luks.root, on ${shell}`, () => {
    const at = folderOfEachTest("os");
    /** The output of this sh text, with these programs first on PATH. */
    const print = (text: string, programs: Readonly<Record<string, string>> = {}): Buffer => {
      for (const [name, body] of Object.entries(programs))
        writeFileSync(at(name), `#!/bin/sh\n${body}\n`, { mode: 0o755 });
      const [command = "", ...args] = shell.split(" ");
      const all = `PATH=${at()}:$PATH cards=lo\n${liveFunctions.masked}\n${unlockFunctions.masked}\n${text}`;
      return execFileSync(command, [...args, "-c", all], { stdio: ["ignore", "pipe", "ignore"] });
    };

    it("unpackImage notes its progress, and marks a damaged image", () => {
      const blob = fileBlob({ file: at("image.gz"), sha256: "0".repeat(64), size: 0 });
      const text = unpackImage(blob, 5_000_000).render({ secret: String, blob: () => `'${at("image.gz")}'` });
      const unpacked = (bytes: Buffer, rate: string): Buffer => {
        writeFileSync(at("image.gz"), bytes);
        // `sleep` does nothing, so that the first note comes at once; the notes end with the unpacking.
        const stand = `K_TMP=${at()}; sleep() { :; }; note() { printf '%s\\n' "$1" >>${at("notes")}; }`;
        return print(`${stand}\n${text} | { ${rate} cat; }`);
      };
      const content = randomBytes(600_000);
      expect(unpacked(gzipSync(content), `until [ -s ${at("notes")} ]; do :; done;`).equals(content)).to.equal(true);
      expect(readFileSync(at("notes"), "utf8")).to.match(/^unpacked \d of 5 MB$/m);
      expect(existsSync(at("broken"))).to.equal(false);
      unpacked(Buffer.from("no gzip"), "");
      expect(existsSync(at("broken"))).to.equal(true);
    });

    // BusyBox runs its own ip and awk instead of those on PATH.
    const itWithPrograms = shell.startsWith("busybox") ? it.skip : it;
    /** An ip(8) whose card `lo` has these addresses and this route; the loopback card has a hardware address, too. */
    const ip = (addresses: readonly string[], route: string) => ({
      ip: `case "$*" in
  "-o addr show dev lo scope global" | "-4 -o addr show dev lo scope global")
    ${addresses.length === 0 ? ":" : `printf '%s\\n' ${addresses.map((line) => `'1: lo ${line}'`).join(" ")}`} ;;
  "-4 route show default") echo '${route} dev lo' ;;
  "route show default dev lo" | "-4 route show default dev lo") echo '${route}' ;;
  "-6 route show default dev lo") echo 'default via fe80::1 proto ra metric 1024' ;;
  *) exit 64 ;;
esac`,
    });
    const fixed = "inet 192.0.2.11/24 brd 192.0.2.255 scope global lo";
    const dynamic = "inet 192.0.2.50/24 metric 100 brd 192.0.2.255 scope global dynamic lo";
    const six = ["inet6 2001:db8::11/64 scope global", "inet6 2001:db8::abcd/64 scope global dynamic mngtmpaddr"];

    itWithPrograms("network_of keeps fixed addresses with their gateway, or DHCP", () => {
      for (const [addresses, route, lines] of [
        [[fixed, ...six], "via 192.0.2.1 onlink", "Address=192.0.2.11/24 Address=2001:db8::11/64 Gateway=192.0.2.1"],
        [[dynamic], "via 192.0.2.1 proto dhcp src 192.0.2.50", "DHCP=ipv4"],
      ] as const) {
        const printed = print("network_of lo", ip(addresses, `default ${route}`))
          .toString()
          .trim()
          .split("\n");
        const head = "[Match] MACAddress=00:00:00:00:00:00 Type=ether [Network]";
        expect(printed.filter((line) => !line.startsWith("DNS=")).join(" ")).to.equal(`${head} ${lines}`);
      }
    });

    itWithPrograms("initrd_network prints address and gateway of the default route's card, or DHCP", () => {
      const card = "BOOTIF=01-00-00-00-00-00-00\n";
      for (const [addresses, route, printed] of [
        [[fixed.replace("/24", "/26")], "default via 192.0.2.1", `192.0.2.11::192.0.2.1:255.255.255.192::\n${card}`],
        [[fixed.replace("/24", "/8")], "", `192.0.2.11:::255.0.0.0::\n${card}`],
        [[dynamic], "default via 192.0.2.1 proto dhcp", `dhcp\n${card}`],
        [[], "default via 192.0.2.1", undefined],
      ] as const)
        expect(print("initrd_network", ip(addresses, route)).toString()).to.equal(printed ? `IP=${printed}` : "");
    });

    itWithPrograms("keys_of reads all keys of a file without a final line break", () => {
      mkdirSync(at(".ssh"));
      writeFileSync(at(".ssh/authorized_keys"), "ssh-ed25519 AAAA one");
      const keys = print("keys_of root 'ssh-ed25519 BBBB two\n'", { awk: `echo '${at()}'` }).toString();
      expect(keys.split("\n").filter(Boolean)).to.deep.equal(["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"]);
    });

    it("initrd_keys restricts keys to one command, and omits keys with options of their own", () => {
      const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me";
      const lines = [key, 'from="192.0.2.9" ssh-rsa AAAA x', "# ssh-rsa", "ssh-dss AAAA old"].join("\n");
      const printed = print(`keys_of() { printf '%s\\n' "$2"; }\ninitrd_keys ops '${lines}'`).toString();
      const options = 'no-port-forwarding,no-agent-forwarding,no-X11-forwarding,command="cryptroot-unlock"';
      expect(printed).to.equal(`${options} ${key}\n`);
    });
  });
