import { readFileSync, statSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { swapManaged } from "#engine/modules/swap-managed.ts";
import { withOwnStore } from "#support/nixos.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const none = "Filename Type Size Used Priority\n";
const root = "UUID=a / ext4 defaults 0 1\n";

/** They change the /proc/swaps of the test, and no machine's swap. */
const bin = {
  swapon: `priority=-2
[ "$1" != -p ] || { priority=$2; shift 2; }
echo "$1 file 1024 0 $priority" >>/proc/swaps`,
  swapoff: `rest=$(grep -v "^$1 " /proc/swaps) && printf '%s\\n' "$rest" >/proc/swaps`,
};

describe("swap.managed", () => {
  it("wants no swap now nor at boot, or a file in use and in fstab", () => {
    expect(stepOf(swapManaged, { state: "off" }).want).to.deep.equal({ now: "none", atBoot: "none" });
    expect(stepOf(swapManaged, { state: "on", size: "1GiB", priority: 5 }).want).to.deep.equal({
      file: "swap of 1073741824 bytes",
      mode: "600 0:0",
      fstab: "/swapfile none swap sw,pri=5,nofail 0 0",
      active: "priority 5",
    });
  });

  it("refuses a file without a size, odd sizes and paths, and words beside off", () => {
    for (const args of [
      {},
      { state: "on" },
      { state: "on", size: 1000 },
      { state: "on", size: "1M", path: "/a b" },
      { state: "on", size: "1M", path: "a" },
      { state: "off", size: "1M" },
      { state: "off", path: "/swapfile" },
    ])
      expect(swapManaged.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("swap");
        places = makePrivatePlaces({ "/etc": { fstab: root }, "/proc/swaps": none });
      });
      afterEach(async () => {
        places.remove();
        await folder.remove();
      });
      const run = (args: object, options: StepRunOptions = {}) =>
        runStepOn(places.shell(shell), stepOf(swapManaged, args), { bin, ...options });
      // BusyBox's sh runs its own swapon, which would be this machine's.
      const ours = shell === "busybox sh" ? undefined : it;

      it("makes comments of the lines of fstab, and leaves the others", async () => {
        places.write("/etc/fstab", `${root}# swap\n/dev/sda2  none swap sw 0 0\n/b none swap noauto 0 0\n`);
        const dry = await run({ state: "off" }, { dryRun: true });
        expect([dry.outcome, dry.have["atBoot"]]).to.deep.equal(["would-change", "/dev/sda2"]);
        expect((await run({ state: "off" })).outcome).to.equal("changed");
        expect(places.read("/etc/fstab")).to.equal(
          `${root}# swap\n# no swap (kcore): /dev/sda2  none swap sw 0 0\n/b none swap noauto 0 0\n`,
        );
        expect((await run({ state: "off" })).outcome).to.equal("ok");
      });

      it("refuses where what lies in swap does not fit into memory", async () => {
        places.write("/proc/swaps", `${none}/dev/sda2 partition 9999999999 9999999999 -2\n`);
        const { problem } = await run({ state: "off" });
        expect(problem?.code).to.equal("SWAP_NEEDED");
      });

      ours?.("takes what is in use out of use", async () => {
        places.write("/proc/swaps", `${none}/dev/sda2 partition 1024 0 -2\n/srv/a file 1024 0 -3\n`);
        const done = await run({ state: "off" });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.have["now"]).to.equal("/dev/sda2 /srv/a");
        expect((await run({ state: "off" })).outcome).to.equal("ok");
      });

      it("masks what systemd would start at boot, and names a service that makes swap", async () => {
        const systemctl = `case $* in
  "show -p Wants,Requires swap.target") printf 'Requires=\\nWants=a.swap dev-zram0.swap dev-sda2.swap\\n' ;;
  "show -p Id,"*)
    load=loaded; [ ! -e ${folder.path}/masked ] || load=masked
    printf 'Id=a.swap\\nSourcePath=/etc/fstab\\nLoadState=loaded\\nUnitFileState=generated\\n\\n'
    printf 'LoadState=%s\\nId=dev-zram0.swap\\nSourcePath=\\nUnitFileState=generated\\n\\n' $load
    printf 'Id=dev-sda2.swap\\nLoadState=masked\\nUnitFileState=masked\\n\\n'
    printf 'Id=zramswap.service\\nLoadState=%s\\nUnitFileState=enabled\\n' "$(cat ${folder.path}/zramswap)"
    ;;
  daemon-reload) ;;
  "mask -- dev-zram0.swap") : >${folder.path}/masked ;;
  *) exit 9 ;;
esac`;
        const on = withOwnStore(
          shell,
          "mount --rbind /etc /mnt/root/etc",
          "mkdir -p /mnt/root/run/systemd/system",
          "mount --rbind /var/tmp /mnt/root/var/tmp",
        );
        const turnOff = () =>
          runStepOn(places.shell(on), stepOf(swapManaged, { state: "off" }), { bin: { ...bin, systemctl } });
        writeFileSync(`${folder.path}/zramswap`, "not-found");
        const done = await turnOff();
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(done.have["atBoot"]).to.equal("dev-zram0.swap");
        writeFileSync(`${folder.path}/zramswap`, "loaded");
        expect((await turnOff()).problem?.message).to.contain("zramswap.service makes swap at every boot");
      });

      ours?.("makes a file without holes, in use and in fstab, and another one when it grows", async () => {
        const path = `${folder.path}/swap`;
        const done = await run({ state: "on", path, size: "1MiB" });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        const { mode, size, blocks } = statSync(path);
        expect([mode & 0o777, size, blocks * 512 >= size]).to.deep.equal([0o600, 2 ** 20, true]);
        expect(places.read("/etc/fstab")).to.equal(`${root}${path} none swap sw,nofail 0 0\n`);
        expect((await run({ state: "on", path, size: "1MiB" })).outcome).to.equal("ok");
        const grown = await run({ state: "on", path, size: "2MiB", priority: 3 });
        expect(grown.outcome, JSON.stringify(grown)).to.equal("changed");
        expect([grown.have["file"], grown.have["active"]]).to.deep.equal(["swap of 1048576 bytes", "priority -2"]);
        expect(places.read("/proc/swaps")).to.equal(`${none}${path} file 1024 0 3\n`);
      });

      ours?.(
        "leaves the old file in use where the kernel does not take the new one, or there is no room for it",
        async () => {
          const path = `${folder.path}/swap`;
          await run({ state: "on", path, size: "1MiB", priority: 3 });
          const swapon = `case $* in *.kcore) echo "swapon failed: Invalid argument" >&2; exit 255 ;; esac\n${bin.swapon}`;
          const refused = await run({ state: "on", path, size: "2MiB", priority: 3 }, { bin: { ...bin, swapon } });
          expect([refused.outcome, refused.stderr], JSON.stringify(refused)).to.deep.equal([
            "failed",
            "swapon failed: Invalid argument\n",
          ]);
          expect((await run({ state: "on", path, size: "1000T", priority: 3 })).outcome).to.equal("failed");
          const mv = 'case $* in *swap.kcore*) exit 1 ;; esac\nexec /bin/mv "$@"';
          const unmoved = await run({ state: "on", path, size: "2MiB", priority: 3 }, { bin: { ...bin, mv } });
          expect(unmoved.outcome, JSON.stringify(unmoved)).to.equal("failed");
          expect(places.read("/proc/swaps")).to.equal(`${none}${path} file 1024 0 3\n`);
          expect((await run({ state: "on", path, size: "1MiB", priority: 3 })).outcome).to.equal("ok");
          expect((await run({ state: "on", path, size: "2MiB", priority: 3 })).outcome).to.equal("changed");
          expect(places.read("/proc/swaps")).to.equal(`${none}${path} file 1024 0 3\n`);
        },
      );

      it("leaves a file that holds something else", async () => {
        const path = `${folder.path}/swap`;
        writeFileSync(path, "a letter");
        expect((await run({ state: "on", path, size: "1MiB" })).problem?.code).to.equal("FILE_IN_THE_WAY");
        expect(readFileSync(path, "utf8")).to.equal("a letter");
      });

      it("makes nothing in a dry run, and foresees a disk that is too small", async () => {
        const path = `${folder.path}/swap`;
        expect((await run({ state: "on", path, size: "1MiB" }, { dryRun: true })).outcome).to.equal("would-change");
        expect(() => statSync(path)).to.throw();
        const large = await run({ state: "on", path, size: "1000T" }, { dryRun: true });
        expect(large.outcome).to.equal("failed");
        expect(large.stderr).to.contain("MiB are free");
      });
    });
});
