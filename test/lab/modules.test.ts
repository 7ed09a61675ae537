import { expect } from "chai";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { secret } from "#engine/step/secret.ts";
import { commandRun } from "#engine/modules/command-run.ts";
import { directoryManaged } from "#engine/modules/directory-managed.ts";
import { factAssert } from "#engine/modules/fact-assert.ts";
import { fileAbsent } from "#engine/modules/file-absent.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { groupManaged } from "#engine/modules/group-managed.ts";
import { httpReady } from "#engine/modules/http-ready.ts";
import { nixCollected } from "#engine/modules/nix-collected.ts";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { packageInstalled } from "#engine/modules/package-installed.ts";
import { portOpen } from "#engine/modules/port-open.ts";
import { rebootDone } from "#engine/modules/reboot-done.ts";
import { rebootIfRequired } from "#engine/modules/reboot-ifRequired.ts";
import { scriptRun } from "#engine/modules/script-run.ts";
import { serviceCurrent } from "#engine/modules/service-current.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { serviceStopped } from "#engine/modules/service-stopped.ts";
import { symlinkManaged } from "#engine/modules/symlink-managed.ts";
import { unitManaged } from "#engine/modules/unit-managed.ts";
import { userManaged } from "#engine/modules/user-managed.ts";
import { waitFor } from "#engine/modules/wait-for.ts";
import type { Lab, LabNode } from "#lab/lab.ts";
import { SharedLine } from "#support/shared-line.ts";
import { runStepOn, stepOf, type StepRun, type StepRunOptions } from "#support/steps.ts";
import { ownLab } from "#support/own-lab.ts";

const unit = `[Unit]
Description=A demonstration
[Service]
ExecStart=/bin/sleep infinity
[Install]
WantedBy=multi-user.target
`;

describe("modules on real nodes", function () {
  this.timeout(600_000);
  let lab: Lab;
  let n1: LabNode;
  let b1: LabNode;

  before(async () => {
    lab = await ownLab();
    const nodes = await lab.up([
      { name: "n1", kind: "debian", nix: true, disks: ["100M"] },
      { name: "b1", kind: "busybox", disks: [] },
    ]);
    [n1, b1] = nodes as [LabNode, LabNode];
  });
  after(async () => {
    for (const line of lines.values()) line.close();
    await lab?.down();
  });

  const lines = new Map<LabNode, SharedLine>();
  const lineTo = (node: LabNode): SharedLine => {
    const line = lines.get(node) ?? new SharedLine(node);
    lines.set(node, line);
    return line;
  };

  const run = (node: LabNode, module: ModuleDefinition, args: object, options: StepRunOptions = {}): Promise<StepRun> =>
    runStepOn(lineTo(node).via, stepOf(module, args), options);

  async function converges(node: LabNode, module: ModuleDefinition, args: object): Promise<void> {
    const first = await run(node, module, args);
    expect(first.outcome, JSON.stringify(first, undefined, 1)).to.equal("changed");
    const second = await run(node, module, args);
    expect(second.outcome, JSON.stringify(second, undefined, 1)).to.equal("ok");
  }

  for (const name of ["n1", "b1"]) {
    const node = (): LabNode => (name === "n1" ? n1 : b1);

    it(`${name}: files, folders and links converge`, async () => {
      await converges(node(), directoryManaged, { path: "/srv/a b/c", mode: "0750", owner: "root", group: "root" });
      await converges(node(), fileManaged, { path: "/srv/a b/f", content: "x\n", mode: "0640", backup: true });
      await converges(node(), fileManaged, { path: "/srv/a b/f", content: secret("y\n"), validate: "grep -q y %s" });
      await converges(node(), symlinkManaged, { path: "/srv/link", target: "a b" });
      await converges(node(), fileAbsent, { path: "/srv/link" });
      await converges(node(), fileAbsent, { path: "/srv/a b", recurse: true });
      expect((await run(node(), fileAbsent, { path: "/proc/sys", recurse: true })).outcome).to.equal("failed");
    });

    it(`${name}: commands and scripts run`, async () => {
      expect((await run(node(), commandRun, { argv: ["cat"], stdin: secret("in") })).stdout.trim()).to.equal("in");
      expect((await run(node(), scriptRun, { text: 'echo "$1"', args: ["it's"] })).stdout.trim()).to.equal("it's");
    });

    it(`${name}: ports, waits and facts are seen`, async () => {
      expect((await run(node(), portOpen, { port: 22 }, { dryRun: true })).outcome).to.equal("ok");
      expect((await run(node(), portOpen, { port: 23 }, { dryRun: true })).have).to.deep.equal({
        "127.0.0.1:23": "closed",
      });
      expect((await run(node(), waitFor, { path: "/etc/passwd" })).outcome).to.equal("ok");
      const facts = await run(node(), factAssert, {
        that: [
          { cpus: 1 },
          { memory: "64M" },
          { freeSpace: { path: "/var/x", min: "1M" } },
          { root: true },
          { portFree: { port: 22 } },
          { clock: { now: Date.now() / 1000 } },
          { kernelMin: "4.0" },
        ],
      });
      const { "port 22 free": port, ...others } = facts.have;
      expect(port, JSON.stringify(facts)).to.match(/^taken by (sshd|dropbear|systemd) \(pid \d+/);
      expect(new Set(Object.values(others)), JSON.stringify(facts)).to.deep.equal(new Set(["ok"]));
    });
  }

  it("n1: packages converge by apt, in one transaction", async () => {
    await converges(n1, packageInstalled, { names: ["hello", "tree"], updateCache: true });
    await converges(n1, packageInstalled, { names: ["tree"], state: "absent" });
    expect((await run(n1, packageInstalled, { names: "hello", state: "latest" })).outcome).to.equal("ok");
  });

  it("n1: a held dpkg lock is waited for, its holder named; an interrupted dpkg is refused (F-20)", async () => {
    // Perl is in every Debian; dpkg's lock is an fcntl lock: struct flock with l_type F_WRLCK.
    const hold = `perl -e 'use Fcntl; open(F,">>","/var/lib/dpkg/lock-frontend"); $l=pack("s s x4 q q l x4",F_WRLCK,0,0,0,0); fcntl(F,F_SETLK,$l) or die; open(L,">/run/locked"); select(undef,undef,undef,0.1) until -e "/run/free"' `;
    await n1.exec(`setsid ${hold} >/dev/null 2>&1 </dev/null & until [ -e /run/locked ]; do sleep 0.1; done`);
    const refused = await run(n1, packageInstalled, { names: "tree", lockTimeout: 0 });
    expect(refused.problem?.code, JSON.stringify(refused)).to.equal("PACKAGE_LOCKED");
    expect(refused.problem?.message).to.match(/held by process \d+ perl/);
    // The step blocks this process until it ends, so the node itself frees the lock.
    await n1.exec("setsid sh -c 'sleep 10; touch /run/free' >/dev/null 2>&1 </dev/null &");
    const waited = await run(n1, packageInstalled, { names: "tree" });
    expect([waited.outcome, waited.notes.length], JSON.stringify(waited)).to.deep.equal(["changed", 1]);
    await n1.exec("touch /var/lib/dpkg/updates/0001");
    const interrupted = await run(n1, packageInstalled, { names: "tree", state: "absent" }, { dryRun: true });
    expect(interrupted.problem?.code).to.equal("PACKAGE_INTERRUPTED");
    await n1.exec("rm /var/lib/dpkg/updates/0001");
  });

  it("n1: groups and users converge with the real tools", async () => {
    await converges(n1, groupManaged, { name: "demo", gid: 4242 });
    const args = {
      name: "demo",
      group: "demo",
      groups: ["adm"],
      shell: "/bin/sh",
      home: "/srv/demo",
      createHome: true,
      password: secret("$6$salt$x"),
    };
    await converges(n1, userManaged, args);
    await converges(n1, userManaged, { ...args, lock: true, password: undefined });
    await converges(n1, userManaged, { name: "demo", state: "absent", removeHome: true });
  });

  it("n1: units and services converge, restart on change, and say why they fail", async () => {
    await converges(n1, unitManaged, { name: "demo", content: unit });
    await converges(n1, serviceRunning, { name: "demo", verifyFor: 1 });
    await converges(n1, unitManaged, { name: "demo", content: "[Service]\nRestart=no\n", dropin: "10-x" });
    const pid = async (): Promise<string> => (await n1.exec("systemctl show -p MainPID demo")).stdout;
    const before = await pid();
    expect((await run(n1, serviceRunning, { name: "demo" }, { due: true })).outcome).to.equal("changed");
    expect(await pid()).not.to.equal(before);
    const bad = await run(n1, unitManaged, { name: "demo", content: unit.replace("ExecStart", "ExecStrat") });
    expect(bad.problem?.code, JSON.stringify(bad)).to.equal("UNIT_INVALID");
    await converges(n1, serviceStopped, { name: "demo", mask: false });
    expect((await run(n1, serviceRunning, { name: "no-such" })).problem?.code ?? "failed").to.be.oneOf([
      "failed",
      "SERVICE_FAILED",
    ]);
    await converges(n1, unitManaged, { name: "dies", content: unit.replace("/bin/sleep infinity", "/bin/sleep 1") });
    const dies = await run(n1, serviceRunning, { name: "dies", verifyFor: 4 });
    expect(dies.problem?.code, JSON.stringify(dies)).to.equal("SERVICE_UNSTABLE");
    await converges(n1, unitManaged, { name: "dies", state: "absent" });
  });

  it("b1: refuses what needs a tool that BusyBox has not", async () => {
    const http = await run(b1, httpReady, { url: "http://127.0.0.1:1/" }, { dryRun: true });
    expect(http.have["status"], JSON.stringify(http)).to.contain("no answer");
    expect((await run(b1, packageInstalled, { names: "tree" })).problem?.code).to.equal("TOOL_MISSING");
  });

  it("n1: generations of profiles that are too many go, with what only they needed", async () => {
    const profile = "/nix/var/nix/profiles/demo";
    // Five generations, each of a path of its own; then back to the fourth.
    const made = await n1.exec(
      `export NIX_REMOTE=; for n in 1 2 3 4 5; do echo $n >/tmp/g$n; nix-env -p ${profile} --set $(nix-store --add /tmp/g$n) || exit 1; done; nix-env -p ${profile} --switch-generation 4`,
    );
    expect(made.code, made.stderr).to.equal(0);
    const left = async (): Promise<string> => (await n1.exec(`cat ${profile}-*-link ${profile}`)).stdout;
    expect((await run(n1, nixCollected, { keep: 4 })).outcome).to.equal("ok");
    const done = await run(n1, nixCollected, { keep: 2 });
    expect([done.outcome, done.have["surplus"]], JSON.stringify(done)).to.deep.equal(["changed", `${profile} 2`]);
    // The present generation, the one before it, and the newer one.
    expect(await left()).to.equal("3\n4\n5\n4\n");
    expect(done.notes.at(-1)).to.match(/^[2-9] store paths deleted/);
    expect((await run(n1, nixCollected, { keep: 2 })).outcome).to.equal("ok");

    // The remaining generations can be rolled back to, or from.
    const at = async (): Promise<string> => (await n1.exec(`cat ${profile}`)).stdout.trim();
    const back = { profile, backFrom: "g4" };
    expect((await run(n1, nixProfile, back, { dryRun: true })).outcome).to.equal("would-change");
    const gone = await run(n1, nixProfile, back);
    expect([gone.outcome, await at()], JSON.stringify(gone)).to.deep.equal(["changed", "3"]);
    expect((await run(n1, nixProfile, back)).outcome).to.equal("ok");
    expect((await run(n1, nixProfile, { profile, backFrom: "g3" })).problem?.code).to.equal("NIX_GENERATION_MISSING");
    await converges(n1, nixProfile, { profile, generation: 5 });
    expect(await at()).to.equal("5");
    const none = await run(n1, nixProfile, { profile, generation: 9 });
    expect(none.problem?.message).to.equal(`${profile} has no generation 9; there is: 3 4 5`);
  });

  it("n1: services that run what an update replaced are restarted, but for those that are left to a boot", async () => {
    // Each unit runs a program of its own, which an update replaces as dpkg does: by a new file of the same name.
    const programs = ["mine", "kept"].map((name) => [name, `/opt/${name}`] as const);
    for (const [name, path] of programs) {
      await n1.exec(`cp /bin/sleep ${path}`);
      await converges(n1, unitManaged, { name, content: unit.replace("/bin/sleep", path) });
      await converges(n1, serviceRunning, { name });
    }
    expect((await run(n1, serviceCurrent, {})).have).to.deep.equal({ left: "none", replaced: "none" });
    for (const [, path] of programs) await n1.exec(`cp /bin/sleep ${path}.new && mv ${path}.new ${path}`);
    const args = { except: ["kept"] };
    const done = await run(n1, serviceCurrent, args);
    expect([done.outcome, done.have, done.now], JSON.stringify(done)).to.deep.equal([
      "changed",
      { left: "kept.service", replaced: "mine.service" },
      { left: "kept.service", replaced: "none" },
    ]);
    expect((await run(n1, serviceCurrent, args)).outcome).to.equal("ok");
    const asked = await run(n1, rebootIfRequired, { services: true }, { dryRun: true });
    expect(asked.have).to.deep.equal({ reboot: "replaced files run in kept.service" });
    expect((await run(n1, rebootIfRequired, {})).outcome).to.equal("ok");
    for (const [name] of programs) await converges(n1, serviceStopped, { name });
  });

  it("n1: a boot that Debian asks for is made, and not a second time", async () => {
    const bootId = (await n1.exec("cat /proc/sys/kernel/random/boot_id")).stdout.trim();
    await n1.exec("echo libc6 >/run/reboot-required.pkgs; : >/run/reboot-required");
    const first = await run(n1, rebootIfRequired, {});
    expect([first.outcome, first.have["reboot"]?.trim()]).to.deep.equal(["changed", "/run/reboot-required: libc6"]);
    lineTo(n1).drop();
    await n1.ready({ notBoot: bootId });
    expect((await run(n1, rebootIfRequired, {})).outcome).to.equal("ok");
  });

  it("n1: a reboot is done once a run", async () => {
    const bootId = (await n1.exec("cat /proc/sys/kernel/random/boot_id")).stdout.trim();
    expect((await run(n1, rebootDone, { ifFile: "/run/reboot-required" }, { bootId })).outcome).to.equal("ok");
    const first = await run(n1, rebootDone, { always: true }, { bootId });
    expect(first.outcome, JSON.stringify(first)).to.equal("changed");
    lineTo(n1).drop();
    await n1.ready({ notBoot: bootId });
    expect((await run(n1, rebootDone, { always: true }, { bootId })).outcome).to.equal("ok");
  });
});
