import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { packageInstalled } from "#engine/modules/package-installed.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

/** An apt whose installed packages are lines of FOLDER/installed; FOLDER/locked, a number, is how often its lock is held. */
function fakeApt(folder: string): Record<string, string> {
  return {
    sleep: ":",
    "dpkg-query": `for name; do :; done; grep -q "^$name " ${folder}/installed && sed -n "s/^$name /installed /p" ${folder}/installed`,
    "apt-cache": `echo "  Candidate: 2.0"`,
    "apt-get": `echo "$DEBIAN_FRONTEND $*" >>${folder}/calls
case "$*" in *"-s "*) echo "Remv hello [1.0]"; ! [ -e ${folder}/needed ] || echo "Remv needy [1.0]"; exit ;; esac
if read -r left <${folder}/locked && [ "$left" -gt 0 ]; then
  echo $((left - 1)) >${folder}/locked
  echo "E: Could not get lock /var/lib/dpkg/lock-frontend. It is held by process 42 (unattended-upgr)" >&2; exit 100
fi
[ ! -e ${folder}/interrupted ] || { echo "E: dpkg was interrupted, you must manually run 'dpkg --configure -a'" >&2; exit 100; }
while [ "$1" != -- ]; do last=$1; shift; done; shift
case $last in
  install) for name; do sed -i "/^\${name%%=*} /d" ${folder}/installed; case $name in *=*) echo "\${name%%=*} \${name#*=}" ;; *) echo "$name 2.0" ;; esac >>${folder}/installed; done ;;
  remove | purge) for name; do sed -i "/^$name /d" ${folder}/installed; done ;;
  *) exit 64 ;;
esac`,
  };
}

describe("package.installed", () => {
  it("wants each package, whatever the state", () => {
    const want = (args: object) => stepOf(packageInstalled, args).want;
    expect(want({ names: ["a", "b=1.2-3"] })).to.deep.equal({ a: "installed", b: "1.2-3" });
    expect(want({ name: "a" })).to.deep.equal({ a: "installed" });
    expect(want({ names: "a", state: "latest" })).to.deep.equal({ a: "latest" });
    expect(want({ names: "a", state: "absent" })).to.deep.equal({ a: "absent" });
  });

  it("refuses options as names, and a pinned version that is to be latest", () => {
    const refused = [
      { names: "-y" },
      { names: [] },
      { names: "a b" },
      {
        names: "a=1",
        state: "latest",
      },
      {},
      { name: "-y" },
      { name: ["a"] },
      {
        name: "a",
        names: ["b"],
      },
      {
        name: "a=1",
        state: "absent",
      },
    ];
    for (const args of refused)
      expect(packageInstalled.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-package-"));
        writeFileSync(join(folder, "installed"), "hello 1.0\n");
        writeFileSync(join(folder, "locked"), "0\n");
      });
      afterEach(() => rmSync(folder, { recursive: true }));
      const run = (args: object, options: object = {}) =>
        runStepOn(shell, stepOf(packageInstalled, args), { bin: fakeApt(folder), ...options });
      const calls = (): string[] => readFileSync(join(folder, "calls"), "utf8").trimEnd().split("\n");

      it("installs what is missing in one transaction, asking nothing, keeping changed configuration", async () => {
        const done = await run({ names: ["hello", "tree", "g++=12"] });
        expect([done.outcome, done.now], JSON.stringify(done)).to.deep.equal([
          "changed",
          { hello: "installed", tree: "installed", "g++": "12" },
        ]);
        expect(calls()).to.have.length(1);
        for (const part of ["noninteractive", "--force-confold", "-y", "install -- hello tree g++=12"])
          expect(calls()[0]).to.contain(part);
        expect((await run({ names: ["hello", "tree"] })).outcome).to.equal("ok");
      });

      it("brings a package to its latest version and removes one", async () => {
        const latest = await run({ names: "hello", state: "latest" });
        expect([latest.have["hello"], latest.now["hello"]]).to.deep.equal(["1.0, 2.0 is there", "latest"]);
        expect((await run({ names: "hello", state: "absent" })).outcome).to.equal("changed");
      });

      it("refuses to remove what others need, and names them", async () => {
        writeFileSync(join(folder, "needed"), "");
        const refused = await run({ names: "hello", state: "absent" }, { dryRun: true });
        expect([refused.problem?.code, refused.problem?.message]).to.deep.equal([
          "PACKAGE_NEEDED",
          "these packages would go too: needy",
        ]);
      });

      it("waits for a held lock and names its holder (F-20)", async () => {
        writeFileSync(join(folder, "locked"), "1\n");
        const done = await run({ names: "tree" });
        expect([done.outcome, done.notes]).to.deep.equal([
          "changed",
          ["waiting for the package manager's lock, held by process 42 unattended-upgr"],
        ]);
      });

      it("gives up on a lock when its time is over (F-20)", async () => {
        writeFileSync(join(folder, "locked"), "9\n");
        const done = await run({ names: "tree", lockTimeout: 0 }, { stateDir: folder });
        expect([done.problem?.code, done.problem?.message]).to.deep.equal([
          "PACKAGE_LOCKED",
          "the package manager's lock is held by process 42 unattended-upgr, waited 0 s",
        ]);
        // dpkg never began.
        expect(readdirSync(join(folder, "fresh"))).to.deep.equal([]);
      });

      // BusyBox takes its own dpkg, whatever stands on PATH.
      if (!shell.startsWith("busybox"))
        it("lets dpkg finish first what it was doing when a step of ours was cut off, and only that", async () => {
          mkdirSync(join(folder, "fresh"));
          writeFileSync(join(folder, "fresh", "dpkg"), "");
          const dpkg = `echo "dpkg $*" >>${folder}/calls; exit`;
          const bin = { ...fakeApt(folder), dpkg };
          for (const name of ["tree", "other"])
            expect((await run({ names: name }, { stateDir: folder, bin })).outcome).to.equal("changed");
          expect(calls().map((line) => line.split(" ")[0])).to.deep.equal(["dpkg", "noninteractive", "noninteractive"]);
          expect(calls()[0]).to.equal("dpkg --force-confdef --force-confold --configure -a");
          expect(readdirSync(join(folder, "fresh"))).to.deep.equal([]);
        });

      it("is not in order while what a step of ours began is half done, whatever dpkg says of the package itself", async () => {
        mkdirSync(join(folder, "fresh"));
        writeFileSync(join(folder, "fresh", "dpkg"), "");
        for (const state of ["present", "absent"]) {
          const step = await run({ name: "hello", state }, { stateDir: folder, dryRun: true });
          expect([step.outcome, step.have]).to.deep.equal(["would-change", { hello: "cut off" }]);
          writeFileSync(join(folder, "installed"), "");
        }
      });

      it("refuses when dpkg was interrupted, and says what to run (F-20)", async () => {
        writeFileSync(join(folder, "interrupted"), "");
        const done = await run({ names: "tree" });
        expect([done.problem?.code, done.problem?.message.includes("dpkg --configure -a")]).to.deep.equal([
          "PACKAGE_INTERRUPTED",
          true,
        ]);
      });
    });
});
