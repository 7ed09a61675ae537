import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { luksOpened } from "#engine/modules/luks-opened.ts";
import { luksRoot } from "#engine/modules/luks-root.ts";
import { unlockFunctions } from "#engine/step/fragments/os-unlock.ts";
import { functions } from "#engine/step/fragments/os-debian.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const on = { disk: { serial: "S1" } };

// What it does to a machine is tried on one that boots afterwards: test/lab/vm-encrypted-root.test.ts.
describe("luks.root", () => {
  it("wants the container that luks.opened would make there, and marks it as unfinished when it makes it", () => {
    const { want, apply } = stepOf(luksRoot, on);
    const { uuid = "" } = stepOf(luksOpened, { ...on, partition: "root" }).want;
    expect(want).to.deep.equal({ type: "crypto_LUKS", uuid, container: "in order" });
    expect(apply?.masked).to.contain(`luksFormat -q --type luks2 --uuid ${uuid} --label kcore-unfinished --key-file`);
  });

  it("gives a container that is made anew another recovery key: that of the last one opens nothing", () => {
    const { want, apply } = stepOf(luksRoot, on);
    const text = String(apply);
    const forgotten = text.indexOf(`rm -f /etc/kcore/luks/${want["uuid"] ?? ""}.recovery`);
    expect(forgotten).to.be.greaterThan(0).and.be.lessThan(text.indexOf("luksFormat"));
  });

  it("knows one way to unlock it", () => {
    expect(luksRoot.args.safeParse({ ...on, unlock: "ssh" }).success).to.equal(true);
    expect(luksRoot.args.safeParse({ ...on, unlock: "tpm2" }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename)) {
    it(`refuses where the machine has no such disk, on ${shell}`, async () => {
      const { problem } = await runStepOn(shell, stepOf(luksRoot, on), { bin: { lsblk: "exit 1" } });
      expect(problem?.code).to.equal("DISK_NOT_FOUND");
    });

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
