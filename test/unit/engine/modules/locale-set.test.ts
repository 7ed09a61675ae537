import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { localeSet } from "#engine/modules/locale-set.ts";
import { makePrivatePlaces, type PrivatePlaces } from "#support/private-places.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const supported = "C.UTF-8 UTF-8\nde_DE.UTF-8 UTF-8\nde_DE ISO-8859-1\nde_DE@euro ISO-8859-15\nen_US.UTF-8 UTF-8\n";

describe("locale.set", () => {
  it("wants what is given, no LC_ALL, and each locale generated once", () => {
    expect(
      stepOf(localeSet, {
        locale: "en_US.UTF-8",
        categories: { LC_TIME: "de_DE.UTF-8" },
        locales: ["en_US.UTF-8", "C"],
      }).want,
    ).to.deep.equal({
      LANG: "en_US.UTF-8",
      LC_TIME: "de_DE.UTF-8",
      LC_ALL: "unset",
      generated: "en_US.UTF-8 de_DE.UTF-8",
    });
    expect(stepOf(localeSet, { locale: "C" }).want).to.deep.equal({ LANG: "C", LC_ALL: "unset" });
  });

  it("refuses what is no locale, and LC_ALL", () => {
    for (const args of [
      { locale: "english" },
      { locale: "en_US.UTF-8\nX=1" },
      { locale: "C", categories: { LC_ALL: "C" } },
      { locale: "C", categories: { LC_TIME: "../x" } },
      { locale: "C", locales: ["$(x)"] },
    ])
      expect(localeSet.args.safeParse(args).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let places: PrivatePlaces;
      let folder: TempDir;
      const make = (etc: Readonly<Record<string, string>>): void => {
        places = makePrivatePlaces({ "/etc": etc, "/usr/share": { "i18n/SUPPORTED": supported } });
      };
      beforeEach(async () => {
        folder = await makeTempDir("locales");
        writeFileSync(`${folder.path}/all`, "C\nC.utf8\nPOSIX\n");
      });
      afterEach(async () => {
        places.remove();
        await folder.remove();
      });
      const run = (args: object, options: StepRunOptions = {}) =>
        runStepOn(places.shell(shell), stepOf(localeSet, args), {
          bin: {
            locale: `[ "$*" = -a ] && cat ${folder.path}/all`,
            "locale-gen": `[ "$*" = --keep-existing ] || exit 9
sed -n -e 's/^\\([a-z]*_[A-Z]*\\)\\.UTF-8 UTF-8$/\\1.utf8/p' -e 's/^\\([a-z]*_[A-Z]*@[a-z]*\\) .*/\\1/p' /etc/locale.gen >>${folder.path}/all`,
          },
          ...options,
        });

      it("generates what is missing, and keeps what else the files say", async () => {
        make({
          debian_version: "12\n",
          "locale.gen": "# all\n#\n# de_DE.UTF-8 UTF-8  \n# en_US ISO-8859-1\nfr_FR.UTF-8 UTF-8\n",
          "default/locale": 'LANG="C"\nLANGUAGE=de\nLC_ALL=C\n',
        });
        const args = { locale: "de_DE.UTF-8", categories: { LC_TIME: "C.UTF-8" }, locales: ["de_DE@euro"] };
        const dry = await run(args, { dryRun: true });
        expect([dry.outcome, dry.have]).to.deep.equal([
          "would-change",
          { LANG: "C", LC_TIME: "unset", LC_ALL: "C", generated: "C.UTF-8" },
        ]);
        const done = await run(args);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(places.read("/etc/locale.gen")).to.equal(
          "# all\n#\nde_DE.UTF-8 UTF-8\n# en_US ISO-8859-1\nfr_FR.UTF-8 UTF-8\nde_DE@euro ISO-8859-15\n",
        );
        expect(places.read("/etc/default/locale")).to.equal("LANGUAGE=de\nLANG=de_DE.UTF-8\nLC_TIME=C.UTF-8\n");
        expect((await run(args)).outcome).to.equal("ok");
      });

      it("writes locale.conf where Debian is not", async () => {
        make({});
        const done = await run({ locale: "C.UTF-8" });
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect(places.read("/etc/locale.conf")).to.equal("LANG=C.UTF-8\n");
      });

      it("refuses a locale that is not there, with those near it", async () => {
        make({ debian_version: "12\n" });
        const { problem } = await run({ locale: "de_DE.UTF-16" });
        expect([problem?.code, problem?.message]).to.deep.equal(["LOCALE_UNKNOWN", "there is no locale de_DE.UTF-16"]);
        expect(problem?.detail).to.contain("de_DE.UTF-8 UTF-8");
      });

      it("refuses where nothing can generate it", async () => {
        make({ debian_version: "12\n" });
        const bare = { bin: { locale: "echo C" }, env: { PATH: `${folder.path}:/usr/bin:/bin` } };
        expect((await run({ locale: "de_DE.UTF-8" }, bare)).problem?.code).to.equal("TOOL_MISSING");
      });
    });
});
