import { existsSync } from "node:fs";
import { expect } from "chai";
import { NixosMachine } from "#support/nixos-machine.ts";

// The machine is booted by the test: its uptime goes on from this one's.
const timeouts = { rebootSeconds: 600_000, prepareSeconds: 120, activateSeconds: 60 };

/**
 * An update of a NixOS machine from the order to the report: the real updater, Nix, flakes in git, store, profile and generations. Stand-ins:
 * nixpkgs, switch-to-configuration, systemd with its boot loader, and the boot itself.
 */
describe("updates of a NixOS machine", () => {
  let machine: NixosMachine;
  let first: string;
  before(function () {
    if (process.getuid?.() !== 0 || !existsSync("/usr/bin/nix-store")) this.skip();
  });
  beforeEach(async () => {
    machine = await NixosMachine.open();
    machine.nixpkgs("6.6.1");
    first = machine.systems('version = "25.05.1";');
    machine.install(first);
  });
  afterEach(() => machine?.close());

  const target = (flakeRev: string, more: object = {}): object => ({
    target: { flakeRef: machine.flakeRef, flakeRev, ...more },
    timeouts,
  });
  const old = "nixos-system-n1-25.05.1";
  const young = "nixos-system-n1-25.05.2";

  it("builds a commit of the flake whatever its branch says since, switches, and goes back", async () => {
    const rev = machine.systems('version = "25.05.2";');
    machine.systems('version = "25.11.1";');
    const prepared = await machine.order("prepare", target(rev));
    expect(prepared, machine.log()).to.deep.include({ state: "prepared", needsReboot: false, targetGeneration: 2 });
    expect(machine.state).to.deep.equal({ current: old, booted: old, profile: `system-1-link ${old}` });
    // What is prepared outlives the garbage collector.
    machine.inside("nix-store --gc 2>/dev/null");
    const activated = await machine.order("activate", target(rev));
    expect(activated?.state, machine.log()).to.equal("activated");
    expect(activated?.present).to.deep.equal({
      id: `${machine.flakeRef}&rev=${rev}`,
      version: "25.05.2",
      generation: 2,
    });
    expect(machine.state).to.deep.equal({ current: young, booted: old, profile: `system-2-link ${young}` });
    expect(machine.asked).to.deep.equal([`${young} switch`]);
    const back = await machine.order("roll_back", target(rev));
    expect(back?.state, machine.log()).to.equal("rolled_back");
    expect(machine.state).to.deep.equal({ current: old, booted: old, profile: `system-1-link ${old}` });
    // Once more, it is the generation that it was.
    const prediction = await machine.order("prepare", target(rev), "u2");
    const again = await machine.order("activate", target(rev), "u2");
    expect([again?.state, again?.present.generation], machine.log()).to.deep.equal(["activated", 2]);
    expect(prediction?.targetGeneration).to.equal(2);
  });

  it("boots another nixpkgs once, and keeps it when it has held", async () => {
    const nixpkgsRev = machine.nixpkgs("6.6.8");
    machine.nixpkgs("6.12.0");
    const spec = target(first, { nixpkgsRev });
    const prepared = await machine.order("prepare", spec);
    expect(prepared, machine.log()).to.deep.include({
      state: "prepared",
      needsReboot: true,
      rebootReasons: [
        "the kernel: 6.6.1 -> 6.6.8",
        "the initrd: 6.6.1 -> 6.6.8",
        "the kernel's modules: 6.6.1 -> 6.6.8",
      ],
    });
    const activated = await machine.order("activate", spec);
    expect(activated?.state, machine.log()).to.equal("activated");
    expect(machine.asked).to.deep.equal([`${old} boot`, `${old} boot`]);
    expect(machine.inside("cat /run/booted-system/kernel")).to.equal("linux-6.6.8");
    machine.boot();
    expect(machine.inside("cat /run/booted-system/kernel")).to.equal("linux-6.6.8");
    const back = await machine.order("roll_back", spec);
    expect(back?.state, machine.log()).to.equal("rolled_back");
    expect(machine.inside("cat /run/booted-system/kernel")).to.equal("linux-6.6.1");
  });

  it("is back on its own from a system that does not boot", async () => {
    const rev = machine.systems('version = "25.05.2"; params = "quiet"; marks = [ "noboot" ];');
    await machine.order("prepare", target(rev));
    const report = await machine.order("activate", target(rev));
    expect(report?.failure?.kind, machine.log()).to.equal("reboot");
    expect(machine.state).to.deep.equal({ current: old, booted: old, profile: `system-1-link ${old}` });
    machine.boot();
    expect(machine.state.booted).to.equal(old);
  });

  it("tries a system until the next boot", async () => {
    const rev = machine.systems('version = "25.05.2";');
    const spec = { ...target(rev), activation: { mode: "test" } };
    await machine.order("prepare", spec);
    const report = await machine.order("activate", spec);
    expect(report?.state, machine.log()).to.equal("activated");
    expect(machine.state).to.deep.equal({ current: young, booted: old, profile: `system-1-link ${old}` });
    machine.boot();
    expect(machine.state.current).to.equal(old);
  });

  it("goes back when units fail, and says which", async () => {
    const rev = machine.systems('version = "25.05.2"; marks = [ "exit-switch=4" ];');
    await machine.order("prepare", target(rev));
    const report = await machine.order("activate", target(rev));
    expect(report?.failure?.kind, machine.log()).to.equal("service");
    expect(report?.failure?.message).to.contain("the following units failed: web.service");
    expect(machine.state).to.deep.equal({ current: old, booted: old, profile: `system-1-link ${old}` });
  });

  it("says what Nix said of a build that fails, and of a commit that is not there", async () => {
    const broken = machine.systems("broken = true;");
    const report = await machine.order("prepare", target(broken));
    expect(report?.failure?.kind, machine.log()).to.equal("build");
    expect(report?.failure?.message).to.contain("web.conf: no such directive");
    const missing = await machine.order("prepare", target("0".repeat(39) + "1"), "u2");
    expect(missing?.failure?.kind, machine.log()).to.equal("build");
    expect(machine.asked).to.deep.equal([]);
  });

  it("believes no flake whose inputs are at no commit", async () => {
    const rev = machine.systems('version = "25.05.2";', { isLocked: false });
    const report = await machine.order("prepare", target(rev));
    expect(report?.failure?.kind, machine.log()).to.equal("refused");
    expect(report?.failure?.message).to.match(/^the flake's flake\.lock does not name a commit of every input/);
  });
});
