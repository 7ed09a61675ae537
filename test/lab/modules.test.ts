import { expect } from "chai";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { nixCollected } from "#engine/modules/nix-collected.ts";
import { nixProfile } from "#engine/modules/nix-profile.ts";
import { packageInstalled } from "#engine/modules/package-installed.ts";
import { rebootIfRequired } from "#engine/modules/reboot-ifRequired.ts";
import { serviceCurrent } from "#engine/modules/service-current.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { serviceStopped } from "#engine/modules/service-stopped.ts";
import { unitManaged } from "#engine/modules/unit-managed.ts";
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

/** Locks, failures, restarts and reboots, which the catalogue of modules does not try. */
describe("modules on a real node", () => {
  let lab: Lab;
  let n1: LabNode;

  before(async () => {
    lab = await ownLab();
    [n1] = (await lab.up([{ name: "n1", kind: "debian", nix: true, disks: [] }])) as [LabNode];
    await n1.exec("apt-get -q update");
  });
  after(async () => {
    line?.close();
    await lab?.down();
  });

  let line: SharedLine | undefined;
  const run = (module: ModuleDefinition, args: object, options: StepRunOptions = {}): Promise<StepRun> =>
    runStepOn((line ??= new SharedLine(n1)).via, stepOf(module, args), options);

  async function expectConvergence(module: ModuleDefinition, args: object): Promise<void> {
    const first = await run(module, args);
    expect(first.outcome, JSON.stringify(first, undefined, 1)).to.equal("changed");
    const second = await run(module, args);
    expect(second.outcome, JSON.stringify(second, undefined, 1)).to.equal("ok");
  }

  it("waits for a held dpkg lock and names the holder, and refuses an interrupted dpkg (F-20)", async () => {
    // Perl is in every Debian; dpkg's lock is an fcntl lock: struct flock with l_type F_WRLCK.
    const hold = `perl -e 'use Fcntl; open(F,">>","/var/lib/dpkg/lock-frontend"); $l=pack("s s x4 q q l x4",F_WRLCK,0,0,0,0); fcntl(F,F_SETLK,$l) or die; open(L,">/run/locked"); select(undef,undef,undef,0.1) until -e "/run/free"' `;
    await n1.exec(`setsid ${hold} >/dev/null 2>&1 </dev/null & until [ -e /run/locked ]; do sleep 0.1; done`);
    const refused = await run(packageInstalled, { names: "tree", lockTimeout: 0 });
    expect(refused.problem?.code, JSON.stringify(refused)).to.equal("PACKAGE_LOCKED");
    expect(refused.problem?.message).to.match(/held by process \d+ perl/);
    // The step blocks this process until it ends, so the node itself frees the lock.
    await n1.exec("setsid sh -c 'sleep 10; touch /run/free' >/dev/null 2>&1 </dev/null &");
    const waited = await run(packageInstalled, { names: "tree" });
    expect([waited.outcome, waited.notes.length], JSON.stringify(waited)).to.deep.equal(["changed", 1]);
    await n1.exec("touch /var/lib/dpkg/updates/0001");
    const interrupted = await run(packageInstalled, { names: "tree", state: "absent" }, { dryRun: true });
    expect(interrupted.problem?.code).to.equal("PACKAGE_INTERRUPTED");
    await n1.exec("rm /var/lib/dpkg/updates/0001");
  });

  it("removes surplus generations of profiles, with the paths that only they needed", async () => {
    const profile = "/nix/var/nix/profiles/demo";
    // Five generations, each of a path of its own; then back to the fourth.
    const made = await n1.exec(
      `export NIX_REMOTE=; for n in 1 2 3 4 5; do echo $n >/tmp/g$n; nix-env -p ${profile} --set $(nix-store --add /tmp/g$n) || exit 1; done; nix-env -p ${profile} --switch-generation 4`,
    );
    expect(made.code, made.stderr).to.equal(0);
    const left = async (): Promise<string> => (await n1.exec(`cat ${profile}-*-link ${profile}`)).stdout;
    expect((await run(nixCollected, { keep: 4 })).outcome).to.equal("ok");
    const done = await run(nixCollected, { keep: 2 });
    expect([done.outcome, done.have["surplus"]], JSON.stringify(done)).to.deep.equal(["changed", `${profile} 2`]);
    // The present generation, the one before it, and the newer one.
    expect(await left()).to.equal("3\n4\n5\n4\n");
    expect(done.notes.at(-1)).to.match(/^[2-9] store paths deleted/);
    expect((await run(nixCollected, { keep: 2 })).outcome).to.equal("ok");

    // The remaining generations can be rolled back to, or from.
    const at = async (): Promise<string> => (await n1.exec(`cat ${profile}`)).stdout.trim();
    const back = { profile, backFrom: "g4" };
    expect((await run(nixProfile, back, { dryRun: true })).outcome).to.equal("would-change");
    const gone = await run(nixProfile, back);
    expect([gone.outcome, await at()], JSON.stringify(gone)).to.deep.equal(["changed", "3"]);
    expect((await run(nixProfile, back)).outcome).to.equal("ok");
    expect((await run(nixProfile, { profile, backFrom: "g3" })).problem?.code).to.equal("NIX_GENERATION_MISSING");
    await expectConvergence(nixProfile, { profile, generation: 5 });
    expect(await at()).to.equal("5");
    const none = await run(nixProfile, { profile, generation: 9 });
    expect(none.problem?.message).to.equal(`${profile} has no generation 9; there is: 3 4 5`);
  });

  it("restarts services that run replaced programs, except those left for a reboot", async () => {
    // Each unit runs a program of its own, which an update replaces as dpkg does: by a new file of the same name.
    const programs = ["mine", "kept"].map((name) => [name, `/opt/${name}`] as const);
    for (const [name, path] of programs) {
      await n1.exec(`cp /bin/sleep ${path}`);
      await expectConvergence(unitManaged, { name, content: unit.replace("/bin/sleep", path) });
      await expectConvergence(serviceRunning, { name });
    }
    expect((await run(serviceCurrent, {})).have).to.deep.equal({ left: "none", replaced: "none" });
    for (const [, path] of programs) await n1.exec(`cp /bin/sleep ${path}.new && mv ${path}.new ${path}`);
    const args = { except: ["kept"] };
    const done = await run(serviceCurrent, args);
    expect([done.outcome, done.have, done.now], JSON.stringify(done)).to.deep.equal([
      "changed",
      { left: "kept.service", replaced: "mine.service" },
      { left: "kept.service", replaced: "none" },
    ]);
    expect((await run(serviceCurrent, args)).outcome).to.equal("ok");
    const asked = await run(rebootIfRequired, { services: true }, { dryRun: true });
    expect(asked.have).to.deep.equal({ reboot: "replaced files run in kept.service" });
    expect((await run(rebootIfRequired, {})).outcome).to.equal("ok");
    for (const [name] of programs) await expectConvergence(serviceStopped, { name });
  });

  it("makes the reboot that Debian asks for, once", async () => {
    const bootId = (await n1.exec("cat /proc/sys/kernel/random/boot_id")).stdout.trim();
    await n1.exec("echo libc6 >/run/reboot-required.pkgs; : >/run/reboot-required");
    const first = await run(rebootIfRequired, {});
    expect([first.outcome, first.have["reboot"]?.trim()]).to.deep.equal(["changed", "/run/reboot-required: libc6"]);
    line?.drop();
    await n1.ready({ notBoot: bootId });
    expect((await run(rebootIfRequired, {})).outcome).to.equal("ok");
  });
});
