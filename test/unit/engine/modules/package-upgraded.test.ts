import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { packageUpgraded } from "#engine/modules/package-upgraded.ts";
import { runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** What apt-get 2.6 prints of a simulation; FOLDER/gone makes it remove a package, FOLDER/upgraded ends it. */
function fakeApt(folder: string): Record<string, string> {
  return {
    "apt-get": `echo "$*" >>${folder}/calls
case "$*" in
  *" update") : >${folder}/fetched; exit ;;
  *-s*upgrade)
    for word; do case $word in Dir::Etc::preferencesparts=*) cat "\${word#*=}/zz-kcore" >${folder}/pins ;; esac; done
    echo "The following packages have been kept back:"
    printf '  %s\\n' "kept-a kept-b" kept-c
    echo "The following packages will be upgraded:"
    echo "  curl g++"
    [ ! -e ${folder}/upgraded ] || exit 0
    [ ! -e ${folder}/gone ] || echo "Remv old [1.0]"
    echo "Inst curl [7.88.1-10] (7.88.1-11 Debian:12/stable [amd64]) []"
    echo "Inst new (1.0 Debian:12/stable [amd64])"
    echo "Inst g++ [4:12.2.0-3] (4:12.2.0-4 Debian:12/stable [amd64])"
    echo "Conf curl (7.88.1-11 Debian:12/stable [amd64])" ;;
  *upgrade) : >${folder}/upgraded ;;
  *) exit 64 ;;
esac`,
  };
}

describe("package.upgraded", () => {
  it("wants the newest of all, from fresh lists", () => {
    expect(stepOf(packageUpgraded, {}).want).to.deep.equal({ packages: "newest", lists: "fresh" });
  });

  it("refuses removals in a mode that removes nothing, and options as names", () => {
    for (const args of [{ removals: true }, { except: ["-y"] }, { except: "curl" }, { mode: "dist" }])
      expect(packageUpgraded.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      beforeEach(async () => {
        folder = await makeTempDir("upgrade");
      });
      afterEach(() => folder.remove());
      const at = (name: string): string => join(folder.path, name);
      const fresh = (): void => writeFileSync(at("lists-updated"), "");
      const run = (args: object = {}, options: object = {}): Promise<StepRun> =>
        runStepOn(shell, stepOf(packageUpgraded, args), {
          bin: fakeApt(folder.path),
          stateDir: folder.path,
          ...options,
        });

      it("tells how many are to come, which, and what is kept back; then brings them without a question", async () => {
        fresh();
        const dry = await run({}, { dryRun: true });
        expect([dry.outcome, dry.have], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          {
            lists: "fresh",
            packages: "2 to come: curl 7.88.1-10: 7.88.1-11, g++ 4:12.2.0-3: 4:12.2.0-4",
            "kept back": "kept-a kept-b kept-c",
          },
        ]);
        expect(existsSync(at("upgraded"))).to.equal(false);
        const done = await run();
        expect([done.outcome, done.now["packages"]], JSON.stringify(done)).to.deep.equal(["changed", "newest"]);
        const call = readFileSync(at("calls"), "utf8")
          .split("\n")
          .find((line) => line.includes("-y"));
        expect(call).to.contain("--force-confold").and.contain("--with-new-pkgs upgrade");
        expect(existsSync(at("fetched"))).to.equal(false);
        expect((await run()).outcome).to.equal("ok");
      });

      it("fetches old lists first; a dry run fetches them for itself and tells what they bring", async () => {
        writeFileSync(at("upgraded"), "");
        const args = { listsMaxAge: 0 };
        const dry = await run(args, { dryRun: true });
        expect([dry.outcome, dry.have["lists"], dry.notes], JSON.stringify(dry)).to.deep.equal([
          "would-change",
          "old",
          ["with lists of now: nothing to come"],
        ]);
        expect(existsSync(at("lists-updated"))).to.equal(false);
        const done = await run(args);
        expect([done.outcome, done.now["lists"]]).to.deep.equal(["changed", "fresh"]);
      });

      it("leaves out what is excepted, by a pin that lasts no longer than the step", async () => {
        fresh();
        await run({ except: ["curl", "g++"] });
        expect(readFileSync(at("pins"), "utf8")).to.equal(
          "Package: curl g++\nPin: release a=now\nPin-Priority: 1001\n",
        );
      });

      it("removes nothing that it was not allowed to, and names it", async () => {
        fresh();
        writeFileSync(at("gone"), "");
        for (const dryRun of [true, false]) {
          const { problem } = await run({ mode: "full" }, { dryRun });
          expect([problem?.code, problem?.message.includes("these packages would go: old")]).to.deep.equal([
            "PACKAGE_NEEDED",
            true,
          ]);
        }
        expect(existsSync(at("upgraded"))).to.equal(false);
        const done = await run({ mode: "full", removals: true });
        expect([done.outcome, done.have["would go"]]).to.deep.equal(["changed", "old"]);
        expect(readFileSync(at("calls"), "utf8")).to.contain("dist-upgrade");
      });

      it("is not in order while an earlier step of ours was cut off", async () => {
        fresh();
        writeFileSync(at("upgraded"), "");
        mkdirSync(at("fresh"));
        writeFileSync(at("fresh/dpkg"), "");
        expect((await run({}, { dryRun: true })).have["packages"]).to.equal("cut off");
      });
    });

  describe("without apt", () => {
    let folder: TempDir;
    beforeEach(async () => {
      folder = await makeTempDir("upgrade");
      writeFileSync(join(folder.path, "lists-updated"), "");
    });
    afterEach(() => folder.remove());
    const run = (bin: Record<string, string>, args: object = {}): Promise<StepRun> =>
      runStepOn(
        `unshare -m sh -c 'mount --bind /dev/null /usr/bin/apt-get && exec "$0" "$@"' dash`,
        stepOf(packageUpgraded, args),
        { bin, stateDir: folder.path },
      );

    it("asks apk, which would purge nothing unasked", async () => {
      const done = `${folder.path}/upgraded`;
      const apk = (more: string): Record<string, string> => ({
        apk: `case "$*" in
  "upgrade --simulate") [ -e ${done} ] || { echo "(1/2) Upgrading busybox (1.36.1-r15 -> 1.36.1-r19)"; ${more}; }; echo "OK: 8 MiB in 15 packages" ;;
  "upgrade --wait 300") : >${done} ;;
  *) exit 64 ;;
esac`,
      });
      expect((await run(apk('echo "(2/2) Purging old (1.0-r0)"'))).problem?.code).to.equal("PACKAGE_NEEDED");
      expect((await run(apk(":"), { except: ["a"] })).problem?.code).to.equal("TOOL_MISSING");
      const step = await run(apk(":"));
      expect([step.outcome, step.have["packages"]], JSON.stringify(step)).to.deep.equal([
        "changed",
        "1 to come: busybox 1.36.1-r15: 1.36.1-r19",
      ]);
    });

    it("asks dnf", async () => {
      const done = `${folder.path}/upgraded`;
      const dnf = `case "$*" in
  "-q -C --exclude=vim check-update") [ ! -e ${done} ] || exit 0
    printf '\nkernel.x86_64    5.14.0-9.el9   baseos\npython3.11.noarch 3.11-2 appstream\nObsoleting Packages\na.noarch 1 b\n'; exit 100 ;;
  "-y --exclude=vim upgrade") : >${done} ;;
  *) exit 64 ;;
esac`;
      const step = await run({ dnf }, { except: ["vim"] });
      expect([step.outcome, step.have["packages"]], JSON.stringify(step)).to.deep.equal([
        "changed",
        "2 to come: kernel: 5.14.0-9.el9, python3.11: 3.11-2",
      ]);
    });
  });
});
