import { lstatSync, readlinkSync, symlinkSync } from "node:fs";
import { expect } from "chai";
import { timezoneSet } from "#engine/modules/timezone-set.ts";
import { withOwnStore } from "#support/nixos.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

describe("timezone.set", () => {
  it("wants the zone", () => {
    expect(stepOf(timezoneSet, { zone: "Etc/GMT+5" }).want).to.deep.equal({ zone: "Etc/GMT+5" });
  });

  it("refuses what is no zone's name", () => {
    for (const zone of ["", "/etc/passwd", "../a", "a//b", "a b", "a/"])
      expect(timezoneSet.args.safeParse({ zone }).success, zone).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      afterEach(() => places.remove());
      const make = (etc: Readonly<Record<string, string>>): void => {
        places = makePrivatePlaces({
          "/etc": etc,
          "/usr/share/zoneinfo": { UTC: "u", "Europe/Berlin": "b", "Europe/Busingen": "c", "posix/Europe/Berlin": "b" },
        });
      };
      const run = (zone: string, options: StepRunOptions = {}) =>
        runStepOn(places.shell(shell), stepOf(timezoneSet, { zone }), options);
      const linked = (): string => readlinkSync(places.path("/etc/localtime"));

      it("links the zone and names it where Debian does", async () => {
        make({ debian_version: "12.1\n", timezone: "Etc/UTC\n", localtime: "a copy" });
        const dry = await run("Europe/Berlin", { dryRun: true });
        expect([dry.outcome, dry.have["zone"]]).to.deep.equal([
          "would-change",
          "file (/etc/localtime), Etc/UTC (/etc/timezone)",
        ]);
        expect(lstatSync(places.path("/etc/localtime")).isFile()).to.equal(true);
        const done = await run("Europe/Berlin");
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(linked()).to.equal("/usr/share/zoneinfo/Europe/Berlin");
        expect(places.read("/etc/timezone")).to.equal("Europe/Berlin\n");
        expect((await run("Europe/Berlin")).outcome).to.equal("ok");
        places.write("/etc/timezone", "UTC\n");
        expect((await run("Europe/Berlin")).have["zone"]).to.equal(
          "Europe/Berlin (/etc/localtime), UTC (/etc/timezone)",
        );
      });

      it("knows a relative link, and makes no /etc/timezone elsewhere", async () => {
        make({});
        symlinkSync("../usr/share/zoneinfo/UTC", places.path("/etc/localtime"));
        expect((await run("UTC")).outcome).to.equal("ok");
        expect((await run("Europe/Berlin")).outcome).to.equal("changed");
        expect(() => places.read("/etc/timezone")).to.throw();
      });

      it("finds a link that leads nowhere", async () => {
        make({});
        symlinkSync("/usr/share/zoneinfo/Europe/Gone", places.path("/etc/localtime"));
        const gone = await run("Europe/Gone");
        expect([gone.have["zone"], gone.problem?.code]).to.deep.equal([
          "Europe/Gone, which is not there",
          "TIMEZONE_UNKNOWN",
        ]);
      });

      it("refuses a zone that is not there, with those near it", async () => {
        make({});
        const { problem } = await run("Europe/Berlyn");
        expect(problem).to.deep.equal({
          code: "TIMEZONE_UNKNOWN",
          message: "there is no time zone Europe/Berlyn: near it are",
          detail: "Europe/Berlin",
        });
        expect((await run("Europe/Berlyn", { dryRun: true, unsure: true })).outcome).to.equal("would-change");
        expect((await run("Xyzzy")).problem?.message).to.equal("there is no time zone Xyzzy");
      });

      it("refuses on NixOS", async () => {
        make({});
        const on = withOwnStore(
          shell,
          "mkdir /mnt/root/nix/store/a-tzdata",
          "touch /mnt/root/nix/store/a-tzdata/UTC",
          "ln -sf /nix/store/a-tzdata/UTC /mnt/root/etc/localtime",
        );
        const { problem } = await runStepOn(on, stepOf(timezoneSet, { zone: "Europe/Berlin" }), { dryRun: true });
        expect(problem?.code).to.equal("NIXOS_MANAGED");
      });
    });
});
