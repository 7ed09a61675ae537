import { expect } from "chai";
import { logrotateManaged } from "#engine/modules/logrotate-managed.ts";
import { inEtc, type Etc } from "#support/etc.ts";
import { runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const logs = {
  name: "shop",
  paths: ["/var/log/shop/*.log", "/var/log/my shop"],
  options: ["weekly", "rotate 8"],
  postrotate: "if true; then\n  kill -HUP 7\nfi\n",
};

describe("logrotate.managed", () => {
  it("writes paths, directives and a script as logrotate reads them", () => {
    expect(stepOf(logrotateManaged, logs).shown).to.equal(`# Managed by kcore.
/var/log/shop/*.log
"/var/log/my shop" {
    weekly
    rotate 8
    postrotate
        if true; then
          kill -HUP 7
        fi
    endscript
}
`);
  });

  it("refuses names that are passed over, and what is no path, directive or script", () => {
    for (const args of [
      { name: "a.conf" },
      { name: "../a" },
      { paths: ["a"] },
      { paths: ["/a {"] },
      { paths: [] },
      { options: ["rotate 7\n}"] },
      { options: ["}"] },
      { postrotate: "a\nendscript\n}" },
      { content: "x" },
      { state: "absent" },
    ])
      expect(logrotateManaged.args.safeParse({ ...logs, ...args }).success, JSON.stringify(args)).to.equal(false);
    expect(logrotateManaged.args.safeParse({ name: "a", content: "x", options: ["daily"] }).success).to.equal(false);
    expect(logrotateManaged.args.safeParse({ name: "a" }).success).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let etc: Etc;
      beforeEach(async () => {
        etc = await inEtc({ "logrotate.d": { apt: "kept\n" } });
      });
      afterEach(() => etc.remove());
      // Says what logrotate 3.21 says of a directive that it does not know, and of a log that is not there.
      const logrotate = `[ "$1" = -d ] && [ $# = 2 ] || exit 64
! grep -n "rotat " "$2" | sed "s|^\\([0-9]*\\):.*|error: $2:\\1 unknown option 'rotat' -- ignoring line|" >&2
echo "error: stat of /var/log/shop failed: No such file or directory" >&2
exit 1`;
      const run = (args: object, options = {}) =>
        runStepOn(etc.shell(shell), stepOf(logrotateManaged, args), { bin: { logrotate }, ...options });

      it("converges, mends what others changed, and goes away alone", async () => {
        const done = await run(logs);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect((await run(logs)).outcome).to.equal("ok");
        etc.write("logrotate.d/shop", "/var/log/shop { daily }\n");
        expect((await run(logs, { dryRun: true })).shown).to.equal("/var/log/shop { daily }\n");
        expect((await run(logs)).outcome).to.equal("changed");
        expect((await run({ name: "shop", state: "absent" })).outcome).to.equal("changed");
        expect((await run({ name: "shop", state: "absent" })).outcome).to.equal("ok");
        expect([etc.read("logrotate.d/shop"), etc.read("logrotate.d/apt")]).to.deep.equal([undefined, "kept\n"]);
      });

      it("takes any name, and reads the text behind it", async () => {
        for (const name of ["said", "found", "dd"]) {
          const bad = await run({ ...logs, name, options: ["rotat 8"] });
          expect([bad.outcome, bad.problem?.code], name).to.deep.equal(["failed", "FILE_INVALID"]);
          expect((await run({ ...logs, name })).outcome, name).to.equal("changed");
        }
      });

      it("refuses what logrotate does not accept, in a dry run too, and keeps the old file", async () => {
        await run(logs);
        const before = etc.read("logrotate.d/shop");
        for (const dryRun of [true, false]) {
          const bad = await run({ ...logs, options: ["rotat 8"] }, { dryRun });
          expect([bad.outcome, bad.problem?.code]).to.deep.equal(["failed", "FILE_INVALID"]);
          expect(bad.problem?.detail).to.contain("unknown option 'rotat'");
        }
        expect(etc.read("logrotate.d/shop")).to.equal(before);
      });
    });
});
