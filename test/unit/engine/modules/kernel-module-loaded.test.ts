import { mkdirSync, rmSync, symlinkSync } from "node:fs";
import { expect } from "chai";
import { kernelModuleLoaded } from "#engine/modules/kernel-module-loaded.ts";
import { withOwnStore } from "#support/nixos.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { contextOf, runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const load = "/etc/modules-load.d/kcore-br-demo.conf";
const probe = "/etc/modprobe.d/kcore-br-demo.conf";

/** Loads and lets go as the kernel does, in a /sys/module of the test's own. */
const modprobe = `module=/sys/module/br_demo
case "$*" in
  br-demo)
    [ ! -e /tmp/kcore-refuses ] || { echo "Exec format error" >&2; exit 1; }
    mkdir -p $module/parameters $module/holders && echo live >$module/initstate && echo 0 >$module/refcnt
    size=$(sed -n 's/.*size=\\([0-9]*\\).*/\\1/p' /etc/modprobe.d/kcore-br-demo.conf 2>/dev/null)
    echo \${size:-8} >$module/parameters/size && echo Y >$module/parameters/fast
    ;;
  "-r br-demo") rm -r $module ;;
  *) exit 9 ;;
esac`;

describe("kernel_module.loaded", () => {
  it("wants the module now and at boot, with its options", () => {
    expect(stepOf(kernelModuleLoaded, { name: "br_netfilter" }).want).to.deep.equal({
      now: "loaded",
      atBoot: "loaded",
      options: "none",
    });
    const { want } = stepOf(kernelModuleLoaded, { name: "a", options: { x: 1, y: "b" }, reload: true });
    expect(want).to.include({ options: "x=1 y=b", "running x": "1", "running y": "b" });
    expect(stepOf(kernelModuleLoaded, { name: "a", state: "absent", blacklist: true }).want).to.deep.equal({
      now: "absent",
      atBoot: "blacklisted",
    });
  });

  it("refuses odd names, and words that do not go together", () => {
    for (const args of [
      { name: "../a" },
      { name: "-r" },
      { name: "a", options: { x: "1 2" } },
      { name: "a", options: { "x y": 1 } },
      { name: "a", blacklist: true },
      { name: "a", reload: true },
      { name: "a", state: "absent", options: { x: 1 } },
    ])
      expect(kernelModuleLoaded.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      beforeEach(() => {
        places = makePrivatePlaces({
          "/etc": { modules: "# none\n" },
          "/sys/module": { "inside/version": "1" },
          "/sys/class/net": {},
        });
      });
      afterEach(() => places.remove());
      const run = (args: object, options: StepRunOptions = {}, context = contextOf()) => {
        const lib = "/mnt/root/usr/lib/modules/$(uname -r)";
        const on = withOwnStore(
          shell,
          "mount --rbind /etc /mnt/root/etc",
          `mkdir -p ${lib}`,
          `echo kernel/net/br_demo.ko.xz: >${lib}/modules.dep`,
          `echo kernel/fs/builtin.ko >${lib}/modules.builtin`,
        );
        const step = stepOf(kernelModuleLoaded, { name: "br-demo", ...args }, context);
        return runStepOn(places.shell(on), step, { bin: { modprobe }, ...options });
      };

      // BusyBox's sh runs its own modprobe, whatever lies on PATH.
      const ours = shell === "busybox sh" ? undefined : it;

      ours?.("loads it now and at boot, finds it in order, and takes both away again", async () => {
        const done = await run({});
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.have).to.include({ now: "absent", atBoot: "absent" });
        expect(places.read(load)).to.equal("# made by kcore\nbr-demo\n");
        expect((await run({})).outcome).to.equal("ok");
        const gone = await run({ state: "absent" });
        expect(gone.outcome, JSON.stringify(gone)).to.equal("changed");
        expect(gone.have).to.include({ now: "loaded", atBoot: `loaded by ${load}` });
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
      });

      it("changes nothing in a dry run", async () => {
        expect((await run({ options: { size: 4 } }, { dryRun: true })).outcome).to.equal("would-change");
        expect(() => places.read(load)).to.throw();
      });

      ours?.("tells options that count from the next boot, and loads anew only when asked", async () => {
        await run({});
        const told = await run({ options: { size: 64, fast: 1 } });
        expect(told.outcome, JSON.stringify(told)).to.equal("changed");
        expect(places.read(probe)).to.equal("# made by kcore\noptions br-demo size=64 fast=1\n");
        expect(told.notes).to.deep.equal([
          "br-demo runs with size=8: 64 counts from the next boot (reload: true loads it anew)",
        ]);
        const anew = await run({ options: { size: 64, fast: 1 }, reload: true });
        expect(anew.outcome, JSON.stringify(anew)).to.equal("changed");
        expect([anew.have["running size"], anew.have["running fast"]]).to.deep.equal(["8", "1"]);
        expect(anew.now["running size"]).to.equal("64");
        expect((await run({})).have["options"]).to.equal("size=64 fast=1");
        expect(() => places.read(probe)).to.throw();
      });

      it("names the file that gives the module other options, and tells of one that gives the same", async () => {
        places.write("/etc/modprobe.d/local.conf", "# options br_demo size=1\n options br_demo  other=1 size=32\n");
        places.write("/etc/modprobe.d/more.conf", "options br-demo fast=1\noptions br-demonstration size=2\n");
        const options = { size: 64, fast: 1 };
        const refused = await run({ options }, { dryRun: true });
        expect(refused.have["options elsewhere"]).to.equal("/etc/modprobe.d/local.conf: size=32");
        expect(refused.problem).to.deep.equal({
          code: "KERNEL_MODULE_REFUSED",
          message:
            "br-demo gets other options from another file, take them out there: /etc/modprobe.d/local.conf: size=32",
        });
        expect((await run({ options: { fast: 1 } }, { dryRun: true })).notes).to.deep.equal([
          "options of br-demo that this step gives stand in /etc/modprobe.d/more.conf too",
        ]);
        expect((await run({}, { dryRun: true })).notes).to.deep.equal([]);
      });

      ours?.("finds what somebody adds beside a module that is in order", async () => {
        await run({ options: { size: 64 } });
        expect((await run({ options: { size: 64 } })).outcome).to.equal("ok");
        places.write("/etc/modprobe.d/zz.conf", "options br-demo size=8\n");
        expect((await run({ options: { size: 64 } })).problem?.message).to.contain("/etc/modprobe.d/zz.conf: size=8");
      });

      ours?.("takes no module away that is in use", async () => {
        await run({});
        places.write("/sys/module/br_demo/refcnt", "2\n");
        places.write("/sys/module/br_demo/holders/bridge", "");
        const { problem } = await run({ state: "absent" });
        expect(problem).to.deep.equal({ code: "KERNEL_MODULE_REFUSED", message: "br-demo is in use (2 bridge)" });
        expect((await run({ options: { size: 9 }, reload: true })).problem?.code).to.equal("KERNEL_MODULE_REFUSED");
        expect(places.read("/sys/module/br_demo/initstate")).to.equal("live\n");
      });

      it("takes no module away by which the network goes, unless on trial", async () => {
        if (ours) await run({});
        else places.write("/sys/module/br_demo/initstate", "live\n");
        places.write("/sys/module/br_demo/refcnt", "0\n");
        places.write("/sys/module/br_demo/parameters/size", "8\n");
        mkdirSync(places.path("/sys/class/net/eth7/device/driver"), { recursive: true });
        symlinkSync("/sys/module/br_demo", places.path("/sys/class/net/eth7/device/driver/module"));
        for (const args of [{ state: "absent" }, { options: { size: 9 }, reload: true }])
          expect((await run(args, { dryRun: true })).problem).to.deep.equal({
            code: "KERNEL_MODULE_REFUSED",
            message: "br-demo is in use (eth7)",
          });
        rmSync(places.path("/sys/class/net/eth7"), { recursive: true });
        places.write("/sys/class/net/br0/uevent", "DEVTYPE=br_demo\nINTERFACE=br0\n");
        expect((await run({ state: "absent" }, { dryRun: true })).problem?.message).to.contain("(br0)");
        const onTrial = contextOf({ onTrial: true });
        expect((await run({ state: "absent" }, { dryRun: true }, onTrial)).outcome).to.equal("would-change");
      });

      it("counts what is built in as loaded", async () => {
        for (const name of ["builtin", "inside"]) {
          const done = await run({ name });
          expect(done.have["now"]).to.equal("loaded");
          expect(done.outcome, JSON.stringify(done)).to.equal("changed");
          expect((await run({ name, state: "absent" })).problem?.message).to.equal(`${name} is built into the kernel`);
        }
      });

      it("keeps a blacklist, and names those of others", async () => {
        const done = await run({ state: "absent", blacklist: true });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(places.read(probe)).to.equal("# made by kcore\nblacklist br-demo\ninstall br-demo /bin/false\n");
        expect((await run({ state: "absent", blacklist: true })).outcome).to.equal("ok");
        expect((await run({ state: "absent" })).have["atBoot"]).to.equal("blacklisted");
        places.write("/etc/modprobe.d/foreign.conf", "blacklist br_demo\n");
        expect((await run({})).problem?.message).to.contain("/etc/modprobe.d/foreign.conf forbids");
      });

      it("refuses what others load at boot, and what this kernel does not have", async () => {
        places.write("/etc/modules", "br_demo size=3\n");
        expect((await run({ state: "absent" })).problem?.message).to.contain("/etc/modules loads br-demo at boot");
        expect((await run({ name: "br" })).problem?.message).to.contain("there is no module br for the kernel");
        expect((await run({ name: "br" }, { dryRun: true, unsure: true })).outcome).to.equal("would-change");
      });
    });
});
