import { readFileSync } from "node:fs";
import { expect } from "chai";
import { limitsSet } from "#engine/modules/limits-set.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const limits = [
  { domain: "postgres", type: "soft", item: "nofile", value: 65_536 },
  { domain: "@ops", item: "memlock", value: "unlimited" },
];
const file = "/etc/security/limits.d/60-postgres.conf";

describe("limits.set", () => {
  it("is one file, as data for a batch", () => {
    const { shown } = stepOf(limitsSet, { name: "60-postgres", limits });
    expect(shown).to.equal("# made by kcore\npostgres soft nofile 65536\n@ops - memlock unlimited\n");
    const { want, data } = stepOf(limitsSet, { name: "60-postgres", limits: limits.slice(1) });
    expect(want).to.include({ kind: "file", mode: "0644", owner: "root", group: "root" });
    expect(data).to.include({ kind: "file", path: file, makeDirs: true });
    expect(stepOf(limitsSet, { name: "60-postgres.conf", state: "absent" }).data).to.include({
      kind: "absent",
      path: file,
    });
  });

  it("takes the domains of limits.conf(5)", () => {
    for (const domain of ["*", "root", "@ops", "%ops", "%", "1000:", ":999", "@1000:2000", "svc.web", "a$"])
      expect(
        limitsSet.args.safeParse({ name: "a", limits: [{ domain, item: "nproc", value: 1 }] }).success,
        domain,
      ).to.equal(true);
  });

  it("refuses names, domains and items that are none, and one thing twice", () => {
    const [first] = limits;
    for (const args of [
      { limits },
      { name: "../a", limits },
      { name: "a" },
      { name: "a", limits: [] },
      { name: "a", limits, state: "absent" },
      { name: "a", limits: [{ ...first, domain: "a b" }] },
      { name: "a", limits: [{ ...first, domain: "#a" }] },
      { name: "a", limits: [{ ...first, domain: ":" }] },
      { name: "a", limits: [{ ...first, item: "files" }] },
      { name: "a", limits: [{ ...first, value: "many" }] },
      { name: "a", limits: [first, { ...first, type: "-" }] },
    ])
      expect(limitsSet.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      beforeEach(() => {
        places = makePrivatePlaces({ "/etc": { "security/limits.conf": "# all\n" } });
      });
      afterEach(() => places.remove());
      const run = (args: object, options: StepRunOptions = {}) =>
        runStepOn(places.shell(shell), stepOf(limitsSet, { name: "60-postgres", ...args }), options);

      it("refuses more open files than the kernel lets a process have, also where the file says so already", async () => {
        const most = Number(readFileSync("/proc/sys/fs/nr_open", "utf8"));
        const of = (value: number | string) => ({ limits: [{ domain: "@ops", item: "nofile", value }] });
        for (const dryRun of [true, false]) {
          const { problem } = await run(of(most + 1), { dryRun });
          expect([problem?.code, problem?.message]).to.deep.equal([
            "LIMIT_TOO_HIGH",
            `@ops is to have ${most + 1} open files, with which PAM lets nobody in: fs.nr_open of this node is ${most} (sysctl.set raises it)`,
          ]);
        }
        expect(() => places.read(file)).to.throw();
        places.write(file, stepOf(limitsSet, { name: "60-postgres", ...of(most + 1) }).shown ?? "");
        expect((await run(of(most + 1))).problem?.code).to.equal("LIMIT_TOO_HIGH");
        expect((await run(of(most))).outcome).to.equal("changed");
        expect((await run(of("unlimited"))).outcome).to.equal("changed");
      });

      it("makes the file with its folder, mends it, and takes it away", async () => {
        expect((await run({ limits }, { dryRun: true })).outcome).to.equal("would-change");
        expect(() => places.read(file)).to.throw();
        const done = await run({ limits });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect((await run({ limits })).outcome).to.equal("ok");
        places.write(file, "* - nofile 1\n");
        const mended = await run({ limits });
        expect([mended.outcome, mended.shown]).to.deep.equal(["changed", "* - nofile 1\n"]);
        expect((await run({ state: "absent" })).outcome).to.equal("changed");
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
        expect(places.read("/etc/security/limits.conf")).to.equal("# all\n");
      });
    });
});
