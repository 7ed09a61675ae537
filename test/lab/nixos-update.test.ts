import { execFileSync } from "node:child_process";
import { join } from "node:path";
import { expect } from "chai";
import type { Lab, LabNode } from "#lab/lab.ts";
import type { OrderStep } from "#rollout/order.ts";
import type { Report } from "#rollout/records.ts";
import { on, openBastion, labRoster, type Bastion, type KcoreEnd } from "#support/deploy.ts";
import { OrderedNode } from "#support/ordered-node.ts";
import { ownLab } from "#support/own-lab.ts";

const fixtures = join(import.meta.dirname, "../fixtures/nixos-systems");
const flakes = "nix --extra-experimental-features 'nix-command flakes'";

/** The flake.nix of the stand-in for nixpkgs, which decides the kernel. */
const nixpkgsFlake = (kernel: string): string =>
  `{ outputs = { self }: { lib.nixosSystem = given: { config.system.build.toplevel = import ./lib.nix ({ kernel = "${kernel}"; } // given); }; }; }\n`;

/** The flake.nix with the node's system. */
const systemsFlake = (given: string): string => `{
  inputs.nixpkgs.url = "git+file:///srv/nixpkgs";
  outputs = { self, nixpkgs }: { nixosConfigurations.n1 = nixpkgs.lib.nixosSystem { name = "n1"; ${given} }; };
}\n`;

/** The boot loader and a system's first moments, with the real environment block of GRUB. */
const startOfSystem = `#!/bin/sh
entry=$(grub-editenv /boot/grub/grubenv list | sed -n 's/^next_entry=//p')
[ ! -e /boot/grub/grubenv ] || grub-editenv /boot/grub/grubenv unset next_entry
once=$(printf '%s' "$entry" | sed -n 's/^NixOS - All configurations>NixOS - Configuration \\([0-9]*\\) .*/\\1/p')
for number in $once $(sed 's/[^0-9]//g' /boot/loader/loader.conf); do
  system=$(readlink /nix/var/nix/profiles/system-$number-link)
  [ -e "$system/noboot" ] || break
done
ln -sfn "$system" /run/booted-system
ln -sfn "$system" /run/current-system
`;

/**
 * The updater of a real node with systemd, Nix, GRUB's environment block and real boots. Since the node is Debian, nixpkgs,
 * switch-to-configuration and GRUB's menu are stand-ins.
 */
describe("updates of a NixOS node, by systemd", () => {
  let lab: Lab;
  let n1: LabNode;
  let bastion: Bastion;
  let first: string;
  let updater: OrderedNode;

  before(async () => {
    lab = await ownLab({ packages: ["git", "grub2-common"] });
    [n1] = (await lab.up([{ name: "n1", kind: "debian", nix: true, disks: ["64M"] }])) as [LabNode];
    bastion = await openBastion({ "roster/lab.yaml": await labRoster(lab) }, { cluster: true });
    updater = new OrderedNode(n1, bastion);
    const { code, stdout, stderr } = await bastion.deploy("n1");
    expect(code, stdout + stderr).to.equal(0);
    await on(
      n1,
      "{ apt-get update -qq && apt-get install -qq -y git grub2-common; } >/dev/null 2>&1; git --version; command -v grub-reboot",
    );
    const archive = execFileSync("tar", ["-cz", "-C", fixtures, "."]).toString("base64");
    await write("/usr/local/sbin/start-of-system", startOfSystem);
    const unit =
      "[Unit]\nDefaultDependencies=no\nAfter=local-fs.target\nBefore=kcore-updater.path\n[Service]\nType=oneshot\nExecStart=/usr/local/sbin/start-of-system\n[Install]\nWantedBy=multi-user.target\n";
    await write("/etc/systemd/system/start-of-system.service", unit);
    await write("/srv/fixtures", archive);
    await on(
      n1,
      [
        "chmod 755 /usr/local/sbin/start-of-system && systemctl -q enable start-of-system",
        "printf 'sandbox = false\\nbuild-users-group =\\n' >>/etc/nix/nix.conf",
        "touch /etc/NIXOS && mkdir -p /boot/loader/entries /boot/grub /srv/nixpkgs /srv/systems",
        "base64 -d /srv/fixtures | tar -xz -C /srv/nixpkgs",
        "git config --global user.name t && git config --global user.email t@example.org",
        "git -C /srv/nixpkgs init -q -b main && git -C /srv/systems init -q -b main",
      ].join(" && "),
    );
    first = await commit('version = "25.05.1";', "6.6.1");
    const built = await on(
      n1,
      `${flakes} build --no-link --json '${flakeRef}&rev=${first}#nixosConfigurations.n1.config.system.build.toplevel'`,
    );
    const [{ outputs }] = JSON.parse(built) as [{ outputs: { out: string } }];
    await on(
      n1,
      `nix-env -p /nix/var/nix/profiles/system --set ${outputs.out} && ${outputs.out}/bin/switch-to-configuration boot && systemctl start start-of-system && rm /boot/asked`,
    );
  });
  after(async () => {
    await bastion?.remove();
    await lab?.down();
  });

  const flakeRef = "git+file:///srv/systems?ref=main";

  async function write(path: string, input: string): Promise<void> {
    expect((await n1.exec(`cat >${path}`, { input })).code).to.equal(0);
  }

  /** Commits a version of nixpkgs; gives the commit. */
  async function commitNixpkgs(kernel: string): Promise<string> {
    await write("/srv/nixpkgs/flake.nix", nixpkgsFlake(kernel));
    return on(n1, "cd /srv/nixpkgs && git add -A && git commit -q --allow-empty -m change && git rev-parse HEAD");
  }

  /** Commits the flake with the node's system, whose lock names that nixpkgs; gives the commit. */
  async function commit(given: string, kernel: string, { isLocked = true } = {}): Promise<string> {
    await commitNixpkgs(kernel);
    await write("/srv/systems/flake.nix", systemsFlake(given));
    const lock = isLocked ? `${flakes} flake update 2>/dev/null` : "rm flake.lock";
    const words = `cd /srv/systems && git add -A && ${lock} && git add -A && git commit -q -m change && git rev-parse HEAD`;
    return on(n1, words);
  }

  const order = (step: OrderStep, flakeRev: string, more: object = {}): Promise<Report> =>
    updater.gives(step, {
      name: `to-${flakeRev.slice(0, 8)}`,
      spec: {
        target: { flakeRef, flakeRev, ...more },
        selector: { allNodes: true },
        // A container's uptime is its host's.
        timeouts: { rebootSeconds: 600_000 },
      },
    });

  const systems = (): Promise<string> =>
    on(
      n1,
      "for link in /run/current-system /run/booted-system /nix/var/nix/profiles/system; do cat $(readlink -f $link)/nixos-version; echo; done",
    );
  const boots = (): Promise<string> =>
    on(n1, "cat /proc/sys/kernel/random/boot_id; systemctl show -P UserspaceTimestamp");

  it("switches to another system and back, beyond the updater's own write access", async () => {
    const rev = await commit('version = "25.05.2";', "6.6.1");
    // The branch moves on, and a prepared system outlives the garbage collector.
    await commit('version = "25.11.1";', "6.12.0");
    const prepared = await order("prepare", rev);
    expect(prepared, JSON.stringify(prepared)).to.include({ state: "prepared", needsReboot: false });
    await on(n1, "nix-store --gc 2>/dev/null");
    const activated = await order("activate", rev);
    expect(activated, JSON.stringify(activated)).to.include({ state: "activated" });
    expect(await systems()).to.equal("25.05.2\n25.05.1\n25.05.2");
    const back = await order("roll_back", rev);
    expect(back, JSON.stringify(back)).to.include({ state: "rolled_back" });
    expect(await systems()).to.equal("25.05.1\n25.05.1\n25.05.1");
  });

  it("boots the kernel of another nixpkgs once, and keeps it", async () => {
    const rev = await commit('version = "25.05.3";', "6.6.1");
    const nixpkgsRev = await commitNixpkgs("6.6.8");
    await commitNixpkgs("6.12.0");
    const before = await boots();
    expect(await order("prepare", rev, { nixpkgsRev })).to.deep.include({
      state: "prepared",
      rebootReasons: ["kernel", "initrd", "kernel's modules"].map((what) => `the ${what}: 6.6.1 -> 6.6.8`),
    });
    const activated = await order("activate", rev, { nixpkgsRev });
    expect(activated, JSON.stringify(activated)).to.include({ state: "activated" });
    expect(await boots()).not.to.equal(before);
    expect(await systems()).to.equal("25.05.3\n25.05.3\n25.05.3");
    await n1.powerCut();
    await n1.start();
    expect(await systems()).to.equal("25.05.3\n25.05.3\n25.05.3");
  });

  it("returns to the former system when another one does not come up", async () => {
    const rev = await commit('version = "25.05.4"; marks = [ "noboot" ];', "6.12.0");
    expect(await order("prepare", rev)).to.include({ state: "prepared", needsReboot: true });
    const failed = await order("activate", rev);
    expect(failed.failure?.kind, JSON.stringify(failed)).to.equal("reboot");
    expect(await systems()).to.equal("25.05.3\n25.05.3\n25.05.3");
  });

  it("refuses a flake with unlocked inputs, and reports the message of a failed build", async () => {
    const { failure } = await order("prepare", await commit('version = "25.05.5";', "6.6.1", { isLocked: false }));
    expect(failure?.kind).to.equal("refused");
    expect(failure?.message).to.match(/^the flake's flake\.lock does not name a commit of every input/);
    const { failure: broken } = await order("prepare", await commit("broken = true;", "6.6.1"));
    expect(broken?.kind).to.equal("build");
    expect(broken?.message).to.contain("web.conf: no such directive");
  });

  /** `kcore orchestrate update` of the system at that commit. */
  async function orchestrate(flakeRev: string, ...words: readonly string[]): Promise<KcoreEnd> {
    const target = `{ flakeRef: "${flakeRef}", flakeRev: ${flakeRev} }`;
    const spec = `target: ${target}, selector: { allNodes: true }, timeouts: { rebootSeconds: 600000 }`;
    await bastion.write({
      "rollout.yaml": `kind: ClusterUpdate\nmetadata: { name: ssh-${flakeRev.slice(0, 8)} }\nspec: { ${spec} }\n`,
    });
    const given = ["-f", "rollout.yaml", "--passphrase-file", "passphrase", ...words];
    return bastion.kcore(["orchestrate", "update", ...given]);
  }

  it("over SSH, builds, boots and keeps a system, finds it in place, and rolls it back with a reboot", async () => {
    const rev = await commit('version = "25.05.5";', "6.6.9");
    const before = await boots();
    const plan = await orchestrate(rev, "--dry-run");
    expect(plan.code, plan.stdout + plan.stderr).to.equal(0);
    expect(await systems()).to.equal("25.05.3\n25.05.3\n25.05.3");
    const done = await orchestrate(rev);
    expect(done.code, done.stdout + done.stderr).to.equal(0);
    expect(done.stdout, done.stdout).to.match(/n1 +boot +changed/);
    expect(await systems()).to.equal("25.05.5\n25.05.5\n25.05.5");
    const booted = await boots();
    expect(booted).not.to.equal(before);
    const again = await orchestrate(rev);
    expect(again.code, again.stdout + again.stderr).to.equal(0);
    expect(again.stdout).to.not.contain("changed:");
    const back = await orchestrate(rev, "--rollback");
    expect(back.code, back.stdout + back.stderr).to.equal(0);
    expect(await systems()).to.equal("25.05.3\n25.05.3\n25.05.3");
    expect(await boots()).not.to.equal(booted);
  });
});
