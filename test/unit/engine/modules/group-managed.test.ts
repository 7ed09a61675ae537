import { expect } from "chai";
import { groupManaged } from "#engine/modules/group-managed.ts";
import { makePrivateEtc, type PrivateEtc } from "#support/accounts.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("group.managed", () => {
  it("wants the group, with its number when one is given", () => {
    expect(stepOf(groupManaged, { name: "kcore" }).want).to.deep.equal({ state: "present" });
    expect(stepOf(groupManaged, { name: "kcore", gid: 900 }).want).to.deep.equal({ state: "present", gid: "900" });
  });

  it("refuses odd names and never removes root", () => {
    for (const args of [{ name: "-g" }, { name: "a b" }, { name: "A" }, { name: "root", state: "absent" }])
      expect(groupManaged.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: PrivateEtc;
      beforeEach(() => {
        etc = makePrivateEtc();
      });
      afterEach(() => etc.remove());

      it("makes, renumbers and removes a group", async () => {
        const run = (args: object) => runStepOn(etc.shell(shell), stepOf(groupManaged, { name: "demo", ...args }));
        expect((await run({ system: true })).outcome).to.equal("changed");
        expect((await run({ gid: 4321 })).outcome).to.equal("changed");
        expect(etc.entry("group", "demo")).to.deep.equal(["demo", "x", "4321", ""]);
        expect((await run({ gid: 4321 })).outcome).to.equal("ok");
        expect((await run({ state: "absent" })).outcome).to.equal("changed");
        expect(etc.entry("group", "demo")).to.equal(undefined);
      });

      it("uses addgroup where groupadd is not there", async () => {
        const bin = { addgroup: '[ "$*" = "-S -g 77 demo" ] || exit 9; echo demo:x:77: >>/etc/group' };
        const run = await runStepOn(
          etc.shell(shell, { bare: true }),
          stepOf(groupManaged, { name: "demo", gid: 77, system: true }),
          { bin },
        );
        expect(run.outcome, run.stderr).to.equal("changed");
      });
    });
});
