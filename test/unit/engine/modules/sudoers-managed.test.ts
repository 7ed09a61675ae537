import { expect } from "chai";
import { sudoersManaged } from "#engine/modules/sudoers-managed.ts";
import { inEtc, type Etc } from "#support/etc.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const rule = { name: "deploy", group: "deploy", commands: ["/usr/bin/systemctl restart a.service", "/usr/bin/id"] };
const sudoers = "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n";

describe("sudoers.managed", () => {
  it("writes one rule, with what sudoers(5) reads escaped", () => {
    expect(stepOf(sudoersManaged, rule).shown).to.equal(
      "# Managed by kcore.\n%deploy ALL=(root) /usr/bin/systemctl restart a.service, /usr/bin/id\n",
    );
    const more = { user: "bob", runAs: ["www-data", "ALL"], noPassword: true, commands: ["/bin/a -o b=c:d,e \\*"] };
    expect(stepOf(sudoersManaged, { name: "a", ...more }).shown).to.contain(
      "\nbob ALL=(www-data, ALL) NOPASSWD: /bin/a -o b\\=c\\:d\\,e \\\\*\n",
    );
  });

  it("refuses names that sudo passes over, and rules that are none", () => {
    for (const args of [
      { name: "a.conf" },
      { name: "a~" },
      { name: "../a" },
      { commands: ["id"] },
      { commands: ["/bin/a\nALL ALL=(ALL) ALL"] },
      { commands: [] },
      { group: "a b" },
      { user: "bob" },
      { runAs: ["a, b"] },
      { content: "x" },
      { state: "absent" },
    ])
      expect(sudoersManaged.args.safeParse({ ...rule, ...args }).success, JSON.stringify(args)).to.equal(false);
    for (const args of [{}, { user: "bob" }, { commands: ["/bin/a"] }, { content: "x", noPassword: true }])
      expect(sudoersManaged.args.safeParse({ name: "a", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: Etc;
      beforeEach(async () => {
        etc = await inEtc({ "sudoers.d": { other: "User_Alias ADMINS = alice\nADMINS ALL=(ALL) ALL\n" } });
      });
      afterEach(() => etc.remove());
      // The real visudo, on a sudoers of our own.
      const run = (args: object, options = {}, text = sudoers) => {
        etc.write("sudoers", text);
        return runStepOn(
          etc.shell(shell, `cat ${etc.folder}/own/sudoers >/etc/sudoers`),
          stepOf(sudoersManaged, args),
          options,
        );
      };

      it("converges, mends mode and text, keeps others, and goes away", async () => {
        const done = await run(rule);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect([etc.mode("sudoers.d/deploy"), (await run(rule)).outcome]).to.deep.equal([0o440, "ok"]);
        etc.write("sudoers.d/deploy", "%deploy ALL=(ALL) ALL\n");
        const drift = await run(rule, { dryRun: true });
        expect([drift.outcome, drift.shown]).to.deep.equal(["would-change", "%deploy ALL=(ALL) ALL\n"]);
        expect((await run(rule)).outcome).to.equal("changed");
        expect((await run({ name: "deploy", state: "absent" })).outcome).to.equal("changed");
        expect((await run({ name: "deploy", state: "absent" })).outcome).to.equal("ok");
        expect([etc.read("sudoers.d/deploy"), etc.read("sudoers.d/other")?.startsWith("User_Alias")]).to.deep.equal([
          undefined,
          true,
        ]);
      });

      it("takes any name", async () => {
        for (const name of ["d", "all"]) {
          const done = await run({ ...rule, name });
          expect(done.outcome, JSON.stringify(done)).to.equal("changed");
          expect((await run({ name, content: "deploy ALL=(ALL ALL\n" })).problem?.code, name).to.equal("FILE_INVALID");
        }
      });

      it("refuses what visudo does not accept, alone or with the others, and keeps the old file", async () => {
        await run(rule);
        const before = etc.read("sudoers.d/deploy");
        for (const dryRun of [true, false]) {
          const bad = await run({ name: "deploy", content: "deploy ALL=(ALL ALL\n" }, { dryRun });
          expect([bad.outcome, bad.problem?.code]).to.deep.equal(["failed", "FILE_INVALID"]);
          expect(bad.problem?.detail).to.contain("syntax error");
          const twice = await run({ name: "deploy", content: "User_Alias ADMINS = bob\n" }, { dryRun });
          expect([twice.outcome, twice.problem?.code]).to.deep.equal(["failed", "FILE_INVALID"]);
          expect(twice.problem?.message).to.contain("together");
        }
        expect(etc.read("sudoers.d/deploy")).to.equal(before);
      });

      it("refuses to take sudo from who this run came in by, in a dry run too, unless on trial", async () => {
        const env = { SUDO_USER: "nobody" };
        const all = { name: "deploy", user: "nobody", commands: ["ALL"], noPassword: true };
        expect((await run(all, { env })).outcome).to.equal("changed");
        const less = [
          { name: "deploy", state: "absent" },
          { ...all, commands: ["/usr/bin/id"] },
        ];
        for (const args of less)
          for (const dryRun of [true, false]) {
            const { problem } = await run(args, { env, dryRun });
            expect([problem?.code, problem?.message.startsWith("nobody,")]).to.deep.equal(["SUDO_LOCKS_OUT", true]);
          }
        expect(etc.read("sudoers.d/deploy")).to.contain("NOPASSWD: ALL");
        expect((await run({ ...all, runAs: ["ALL"] }, { env })).outcome).to.equal("changed");
        expect((await run({ ...all, name: "more" }, { env })).outcome).to.equal("changed");
        expect((await run({ name: "more", state: "absent" }, { env })).outcome).to.equal("changed");
        expect(String(stepOf(sudoersManaged, less[0], contextOf({ onTrial: true })).guard)).not.to.contain("SUDO_USER");
        expect((await run(less[0] ?? {})).outcome).to.equal("changed");
      });

      it("refuses to write what sudo would not read", async () => {
        const run1 = await run(rule, {}, "root ALL=(ALL) ALL\n");
        expect([run1.problem?.code, etc.read("sudoers.d/deploy")]).to.deep.equal(["FILE_INVALID", undefined]);
      });
    });
});
