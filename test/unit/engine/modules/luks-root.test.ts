import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { unlockFunctions } from "#engine/step/fragments/os-unlock.ts";
import { functions } from "#engine/step/fragments/os-debian.ts";
import { shellsOf } from "#support/shells.ts";

describe("luks.root", () => {
  for (const shell of shellsOf(import.meta.filename)) {
    // BusyBox takes its own ip, whatever stands on PATH.
    if (shell.startsWith("busybox")) continue;
    describe(`what the initrd is told, on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-unlock-"));
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      const print = (text: string): string => {
        const [command = "", ...args] = shell.split(" ");
        const all = `PATH=${folder}:$PATH cards=lo\n${functions.masked}\n${unlockFunctions.masked}\n${text}`;
        return execFileSync(command, [...args, "-c", all], { encoding: "utf8" });
      };
      const network = (address: string, route: string): string => {
        writeFileSync(
          join(folder, "ip"),
          `#!/bin/sh
case "$*" in
  "-4 -o addr show dev lo scope global") [ -z "${address}" ] || echo '1: lo ${address}' ;;
  "-4 route show default") echo '${route} dev lo' ;;
  "-4 route show default dev lo") echo '${route}' ;;
  *) exit 64 ;;
esac
`,
        );
        chmodSync(join(folder, "ip"), 0o755);
        return print("initrd_network");
      };
      const card = "BOOTIF=01-00-00-00-00-00-00\n";

      it("is the address and the gateway of the card with the way out, or to ask for them", () => {
        const fixed = "inet 192.0.2.11/26 brd 192.0.2.63 scope global lo";
        expect(network(fixed, "default via 192.0.2.1")).to.equal(`IP=192.0.2.11::192.0.2.1:255.255.255.192::\n${card}`);
        expect(network(fixed.replace("/26", "/8"), "")).to.equal(`IP=192.0.2.11:::255.0.0.0::\n${card}`);
        const given = "inet 192.0.2.50/24 metric 100 scope global dynamic lo";
        expect(network(given, "default via 192.0.2.1 proto dhcp")).to.equal(`IP=dhcp\n${card}`);
        expect(network("", "default via 192.0.2.1")).to.equal("");
      });

      it("are all keys of a file whose last line has no end", () => {
        mkdirSync(join(folder, ".ssh"));
        writeFileSync(join(folder, ".ssh/authorized_keys"), "ssh-ed25519 AAAA one");
        writeFileSync(join(folder, "awk"), `#!/bin/sh\necho '${folder}'\n`);
        chmodSync(join(folder, "awk"), 0o755);
        const keys = print("keys_of root 'ssh-ed25519 BBBB two\n'");
        expect(keys.split("\n").filter(Boolean)).to.deep.equal(["ssh-ed25519 AAAA one", "ssh-ed25519 BBBB two"]);
      });

      it("are the keys of who may log in, for one command, but no line with options of its own", () => {
        const key = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5 me";
        const lines = [key, 'from="192.0.2.9" ssh-rsa AAAA x', "# ssh-rsa", "ssh-dss AAAA old"].join("\n");
        expect(print(`keys_of() { printf '%s\\n' "$2"; }\ninitrd_keys ops '${lines}'`)).to.equal(
          `no-port-forwarding,no-agent-forwarding,no-X11-forwarding,command="cryptroot-unlock" ${key}\n`,
        );
      });
    });
  }
});
