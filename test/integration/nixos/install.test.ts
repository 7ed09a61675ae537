import { execFileSync } from "node:child_process";
import { copyFileSync, cpSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { nixosConfig } from "#actions/nixos-config.ts";
import { nixosInstalled } from "#engine/modules/nixos-installed.ts";
import { osLive } from "#engine/modules/os-live.ts";
import { diskGuid, partitionGuid } from "#engine/step/disk-names.ts";
import { actionContext } from "#support/action-context.ts";
import { openLoopDisk, type LoopDisk } from "#support/loop-disk.ts";
import { liveFacts, withOwnStore } from "#support/nixos.ts";
import { makeProject } from "#support/project.ts";
import { nodeEntry } from "#support/runs.ts";
import { contextOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import type { TempDir } from "#support/temp-dir.ts";

const standIn = join(import.meta.dirname, "../../fixtures/nixpkgs-stand-in");
const run = (command: string, ...args: readonly string[]): string =>
  execFileSync(command, args, { encoding: "utf8", stdio: "pipe" });

/**
 * The effect of nixos.installed on a real disk, with a real Nix and a stand-in for nixos-install. The mount namespace passes for a live
 * system. The real nixos-install needs nixpkgs; these tests have never run it.
 */
describe("nixos.installed", () => {
  let project: TempDir;
  let disk: LoopDisk | undefined;
  let device: string;
  let byId: string;
  let flake: unknown;

  before(async function () {
    project = await makeProject({});
    disk = openLoopDisk(project.path, Buffer.alloc(0), 512 * 2 ** 20);
    if (!disk) return this.skip();
    ({ device, byId } = disk);
    const node = nodeEntry("n1", { disks: [{ byId, use: "os" }] });
    const owner = { node: node.name, nodeId: node.id };
    const guids = ["bios", "esp", "root"].flatMap((partition, index) => [
      `--partition-guid=${index + 1}:${partitionGuid(owner, { disk: { byId }, partition })}`,
      `--change-name=${index + 1}:${partition}`,
    ]);
    run("sgdisk", ..."-n 1:0:+1M -n 2:0:+32M -n 3:0:0".split(" "), `-U=${diskGuid(owner, { byId })}`, ...guids, device);
    run("partx", "-u", device);
    // The installer needs only nixpkgs, which is in the live system's store.
    const nixpkgs = join(project.path, "nixpkgs");
    cpSync(standIn, nixpkgs, { recursive: true });
    mkdirSync(join(nixpkgs, "tools"));
    copyFileSync("/bin/busybox", join(nixpkgs, "tools/busybox"));
    rmSync(join(nixpkgs, "nixos-install"));
    const context = actionContext({ project: project.path, node, nodes: new Map([["n1", node]]) });
    const args = nixosConfig.args.parse({ live: { ...liveFacts, device } });
    const made = await nixosConfig.run(args, context);
    flake = made.outputs["flake"];
  });
  after(async () => {
    disk?.remove();
    await project.remove();
  });
  beforeEach(() => void run("mkfs.ext4", "-q", "-F", `${device}p3`));

  /** Programs of the live system. This kernel has no vfat: the EFI system partition is a folder in memory. */
  const bin = (installer: string): Record<string, string> => ({
    "nixos-install": installer,
    "nixos-generate-config": `#!/bin/sh\n[ "$*" = "--no-filesystems --show-hardware-config" ] || exit 64\necho "{ }"\n`,
    mount: `#!/bin/sh\n[ "$1 $2" != "-t vfat" ] || exec /bin/mount -t tmpfs none "$4"\nexec /bin/mount "$@"\n`,
    efibootmgr: "#!/bin/sh\nexit 64\n",
  });
  const standInInstaller = readFileSync(join(standIn, "nixos-install"), "utf8");
  const live = (...more: readonly string[]): string =>
    withOwnStore(
      "sh",
      "mount -t tmpfs none /mnt/root/run",
      "mkdir -p /mnt/root/root/.ssh",
      `echo ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA > /mnt/root/root/.ssh/authorized_keys`,
      `rm -f /mnt/root/etc/ssh/ssh_host_*`,
      `echo key > /mnt/root/etc/ssh/ssh_host_ed25519_key`,
      `echo pub > /mnt/root/etc/ssh/ssh_host_ed25519_key.pub`,
      ...more,
    );
  const context = contextOf({ nodeId: nodeEntry("n1").id });
  const install = (given: { installer?: string; dryRun?: boolean; live?: string } = {}): Promise<StepRun> => {
    const args = { disk: { byId }, flake, nixpkgs: `path:${join(project.path, "nixpkgs")}`, offline: true };
    const { installer = standInInstaller, dryRun = false } = given;
    return runStepOn(given.live ?? live(), stepOf(nixosInstalled, args, context), { bin: bin(installer), dryRun });
  };
  /** The output of a command that sees the new root at ./root. */
  const inNewRoot = (command: string): string => {
    const folder = join(project.path, "root");
    mkdirSync(folder, { recursive: true });
    return run("unshare", "-m", "sh", "-c", `mount ${device}p3 ${folder} && cd ${folder} && ${command}`).trim();
  };

  it("installs the flake's machine with its host key, and finds it in order afterwards", async () => {
    const done = await install();
    expect(done.outcome, JSON.stringify(done)).to.equal("changed");
    expect(done.notes).to.deep.equal([
      "its host keys and its flake",
      "nixos-install: building the system",
      "nixos-install: installing the boot loader",
    ]);
    expect(
      inNewRoot("ls -A etc/nixos/hosts/n1; cat etc/ssh/ssh_host_ed25519_key; ls etc/NIXOS").split("\n"),
    ).to.deep.equal([
      ...["configuration", "disko", "hardware-configuration", "kcore"].map((name) => `${name}.nix`),
      "key",
      "etc/NIXOS",
    ]);
    // The profile and the boot entry are the system of the flake.
    const system = inNewRoot("readlink nix/var/nix/profiles/$(readlink nix/var/nix/profiles/system)");
    expect(system).to.match(/^\/nix\/store\/\w{32}-nixos-system-n1-25\.05$/);
    expect(inNewRoot("cat boot/loader")).to.equal(system);
    expect(inNewRoot(`cat .${system}/etc/systemd/system/kcore-node-agent.service`)).to.contain(
      "ExecStart=/nix/var/nix/profiles/kcore/bin/kcore-node agent",
    );
    expect(inNewRoot(`cat .${system}/settings.json`)).to.contain('"address":["192.0.2.11/24","2001:db8::11/64"]');
    expect(inNewRoot("ls -A").split("\n")).not.to.include(".kcore-unfinished");
    expect(run("blkid", "-p", "-o", "value", "-s", "LABEL", `${device}p3`).trim()).to.equal("kcore-system");
    expect((await install()).outcome).to.equal("ok");
    expect((await install({ dryRun: true })).outcome).to.equal("ok");
  });

  it("refuses a root that it did not make", async () => {
    inNewRoot("echo mine > file");
    const done = await install();
    expect([done.problem?.code, inNewRoot("cat file")]).to.deep.equal(["OS_FOUND", "mine"]);
  });

  it("continues with a store of this boot, and starts over with one of an earlier boot", async () => {
    const failed = await install({
      installer: '#!/bin/sh\necho \'error: no space\'\nmkdir -p "$2/nix" && echo begun >"$2/nix/begun"\nexit 1\n',
    });
    expect([failed.problem?.code, failed.problem?.detail?.trim()]).to.deep.equal([
      "NIXOS_INSTALL_FAILED",
      "error: no space",
    ]);
    expect(inNewRoot("cat nix/begun")).to.equal("begun");
    const onwards = await install({ installer: '#!/bin/sh\ncat "$2/nix/begun"\nexit 1\n' });
    expect(onwards.problem?.detail?.trim()).to.equal("begun");
    inNewRoot("echo another boot > .kcore-unfinished");
    const anew = await install();
    expect([anew.outcome, inNewRoot("ls nix")]).to.deep.equal(["changed", "store\nvar"]);
  });

  it("refuses a live system without nixos-install, in a dry run too", async () => {
    const args = { disk: { byId }, flake };
    const done = await runStepOn(live(), stepOf(nixosInstalled, args, context), { bin: {}, dryRun: true });
    expect([done.problem?.code, done.problem?.message]).to.deep.equal([
      "TOOL_MISSING",
      "nixos-install is not on this node: boot it from an image of the NixOS installer",
    ]);
  });

  it("os.live reports the facts of a live system", async () => {
    const done = await runStepOn(live(), stepOf(osLive, { disk: { byId } }, context), { bin: bin(standInInstaller) });
    expect(done.outcome, JSON.stringify(done)).to.equal("ok");
    expect(done.have).to.deep.include({ running: "no", device: `/dev/disk/by-id/${byId}`, hardware: "{ }" });
    expect(done.have).to.deep.include({ hostKeys: "/etc/ssh/ssh_host_ed25519_key" });
    expect(done.have["rootKeys"]).to.equal("ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIA");
    expect(done.have["network"]).to.match(/^\[Card \w+\]\n\[Match\]\nMACAddress=/);
  });
});
