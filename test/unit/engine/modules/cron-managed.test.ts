import { expect } from "chai";
import { cronManaged } from "#engine/modules/cron-managed.ts";
import { inEtc, type Etc } from "#support/etc.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const job = { name: "backup", schedule: "30 2 * * 1-5", command: 'backup "$(date +%F)"' };

describe("cron.managed", () => {
  it("writes a job as cron reads it, with % escaped, as pure data", () => {
    const { shown, data } = stepOf(cronManaged, {
      ...job,
      schedule: " 30  2 * *\t1-5 ",
      environment: { MAILTO: "", A: 'say "a"' },
    });
    expect(shown).to.equal(`# Managed by kcore.\nMAILTO=""\nA='say "a"'\n30 2 * * 1-5 root backup "$(date +\\%F)"\n`);
    expect(data).to.deep.include({
      kind: "file",
      path: "/etc/cron.d/backup",
      mode: "0644",
      owner: "root",
      group: "root",
    });
    expect(stepOf(cronManaged, { name: "backup", state: "absent" }).data).to.deep.include({ kind: "absent" });
  });

  it("takes what crontab(5) has", () => {
    for (const schedule of [
      "@reboot",
      "@daily",
      "* * * * *",
      "*/5 0-23/2 1,15 jan sun",
      "0,30 4 31 12 7",
      "0-10/5 * * * mon",
    ])
      expect(cronManaged.args.safeParse({ ...job, schedule }).success, schedule).to.equal(true);
  });

  it("says what is wrong with a schedule", () => {
    const problem = (schedule: string) => cronManaged.args.safeParse({ ...job, schedule }).error?.issues[0]?.message;
    expect(problem("60 * * * *")).to.contain("the minute “60” is none: 0-59");
    expect(problem("* 24 * * *")).to.contain("the hour “24” is none");
    expect(problem("* * 0 * *")).to.contain("the day of the month “0”");
    expect(problem("* * * 13 *")).to.contain("the month “13”");
    expect(problem("* * * * mon-fri")).to.contain("the weekday “mon-fri”");
    expect(problem("5/10 * * * *")).to.contain("the minute “5/10”");
    expect(problem("*/0 * * * *")).to.contain("the minute “*/0”");
    expect(problem("9-5 * * * *")).to.contain("the minute “9-5”");
    expect(problem("* * * *")).to.contain("five fields");
    expect(problem("@often")).to.contain("one of @reboot");
  });

  it("refuses names that cron passes over, commands of two lines or with \\%, and values that cannot be quoted", () => {
    for (const args of [
      { name: "a.sh" },
      { name: "../a" },
      { command: "a\nb" },
      { command: " " },
      { command: "date +\\%F" },
      { user: "a b" },
      { environment: { A: "'\"" } },
      { environment: { "A B": "" } },
      { state: "absent" },
    ])
      expect(cronManaged.args.safeParse({ ...job, ...args }).success, JSON.stringify(args)).to.equal(false);
    expect(cronManaged.args.safeParse({ name: "a" }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: Etc;
      beforeEach(async () => {
        etc = await inEtc({ "cron.d": { other: "kept\n" } });
      });
      afterEach(() => etc.remove());
      const run = (args: object, options = {}) => runStepOn(etc.shell(shell), stepOf(cronManaged, args), options);

      it("converges, mends what others changed, and takes the job away alone", async () => {
        expect((await run(job)).outcome).to.equal("changed");
        expect((await run(job)).outcome).to.equal("ok");
        etc.write("cron.d/backup", "* * * * * root true\n");
        const drift = await run(job, { dryRun: true });
        expect([drift.outcome, drift.have["mode"]]).to.deep.equal(["would-change", "0644"]);
        expect((await run(job)).outcome).to.equal("changed");
        expect((await run({ name: "backup", state: "absent" })).outcome).to.equal("changed");
        expect((await run({ name: "backup", state: "absent" })).outcome).to.equal("ok");
        expect([etc.read("cron.d/backup"), etc.read("cron.d/other")]).to.deep.equal([undefined, "kept\n"]);
      });

      it("refuses a user who is not there, also where the job is as it shall be", async () => {
        const nobody = { ...job, user: "nobody-here" };
        for (const dryRun of [true, false]) {
          const { problem } = await run(nobody, { dryRun });
          expect([problem?.code, problem?.message]).to.deep.equal([
            "USER_MISSING",
            "there is no user nobody-here on this node, in whose name it would run: user.managed makes one",
          ]);
        }
        expect(etc.read("cron.d/backup")).to.equal(undefined);
        etc.write("cron.d/backup", stepOf(cronManaged, nobody).shown ?? "");
        expect((await run(nobody)).problem?.code).to.equal("USER_MISSING");
        expect((await run({ ...job, user: "daemon" })).outcome).to.equal("changed");
        expect((await run({ ...job, user: "daemon" })).outcome).to.equal("ok");
      });

      it("leaves nothing in a dry run", async () => {
        expect((await run(job, { dryRun: true })).outcome).to.equal("would-change");
        expect(etc.read("cron.d/backup")).to.equal(undefined);
      });

      it("is refused where there is no /etc/cron.d", async () => {
        etc.hide("cron.d");
        for (const dryRun of [true, false])
          expect((await run(job, { dryRun })).problem?.code).to.equal("FILE_NO_PARENT");
      });
    });
});
