import { chmodSync, readFileSync, statSync, symlinkSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { fileBlock } from "#engine/modules/file-block.ts";
import { contextOf, problemsOf, runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

const open = "# BEGIN kcore db";
const close = "# END kcore db";

describe("file.block", () => {
  it("wants the block's lines, whole ones", () => {
    const step = stepOf(fileBlock, { path: "/etc/x", name: "db", content: "a\r\nb" });
    expect([step.want["kind"], step.shown]).to.deep.equal(["file", "a\nb\n"]);
    expect(stepOf(fileBlock, { path: "/etc/x", name: "db", state: "absent" }).want).to.deep.equal({ block: "absent" });
    const context = contextOf({ renderTemplate: (name, vars) => `${name} ${String(vars?.["a"])}` });
    expect(stepOf(fileBlock, { path: "/x", name: "db", template: "t", vars: { a: 1 } }, context).shown).to.equal(
      "t 1\n",
    );
  });

  it("refuses odd arguments, and lines that its own markers would be lost among", async () => {
    for (const args of [
      {},
      { content: "a", template: "b" },
      { content: "a", state: "absent" },
      { content: "a", name: "a\nb" },
      { content: "a", comment: "\n" },
      { content: "a", vars: {} },
      { content: "a", insertAfter: "a", insertBefore: "b" },
    ])
      expect(fileBlock.args.safeParse({ path: "/x", name: "db", ...args }).success, JSON.stringify(args)).to.equal(
        false,
      );
    for (const content of [`a\n${close}\n`, "a\0"]) {
      const [problem] = await problemsOf(() => stepOf(fileBlock, { path: "/x", name: "db", content }));
      expect(problem?.code).to.equal("STATE_STEP_INVALID");
    }
  });

  it("shows nothing of secret lines, not even their hash (S-7)", () => {
    const step = stepOf(fileBlock, { path: "/etc/x", name: "db", content: secret("s3cr3t\n") });
    expect(JSON.stringify(step) + String(step.apply) + String(step.probe)).not.to.match(/s3cr3t|sha256:[0-9a-f]/);
    expect([step.sensitive, step.show, step.want["block"]]).to.deep.equal([true, undefined, "as wanted"]);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      let path: string;
      beforeEach(async () => {
        folder = await makeTempDir("block");
        path = `${folder.path}/it's a file`;
      });
      afterEach(() => folder.remove());
      const run = (args: object, options?: StepRunOptions) =>
        runStepOn(shell, stepOf(fileBlock, { path, name: "db", ...args }), options);
      async function edited(before: string, args: object): Promise<string> {
        writeFileSync(path, before);
        chmodSync(path, 0o640);
        const first = await run(args);
        expect(first.outcome, JSON.stringify(first)).to.equal("changed");
        expect((await run(args)).outcome).to.equal("ok");
        expect(statSync(path).mode & 0o777).to.equal(0o640);
        return readFileSync(path, "utf8");
      }

      it("adds its block, and keeps all other lines", async () => {
        const content = "a \\1 $x\n\n";
        const block = `${open}\n${content}${close}\n`;
        expect(await edited("x\ny", { content })).to.equal(`x\ny\n${block}`);
        expect(await edited("x\ny\n", { content, insertAfter: "^x" })).to.equal(`x\n${block}y\n`);
        expect(await edited("x\ny\n", { content, insertBefore: "BOF" })).to.equal(`${block}x\ny\n`);
        expect(await edited("x\r\ny\r\n", { content: "a" })).to.equal(`x\r\ny\r\n${open}\r\na\r\n${close}\r\n`);
      });

      it("mends its block in its place, and shows what was between the markers", async () => {
        const before = `x\n${open}\nold\n${close}\ny\n# BEGIN kcore other\nz\n# END kcore other\n`;
        writeFileSync(path, before);
        const seen = await run({ content: "new" }, { dryRun: true });
        expect([seen.outcome, seen.shown]).to.deep.equal(["would-change", "old\n"]);
        expect(seen.have["block"]).to.match(/^sha256:/);
        expect(readFileSync(path, "utf8")).to.equal(before);
        expect(await edited(before, { content: "new", insertBefore: "BOF" })).to.equal(before.replace("old", "new"));
        expect(await edited(before, { content: "" })).to.equal(before.replace("old\n", ""));
        expect(await edited(before, { state: "absent" })).to.equal("x\ny\n# BEGIN kcore other\nz\n# END kcore other\n");
      });

      it("writes markers in the file's kind of comment", async () => {
        const args = { content: "<b/>", comment: "<!--", commentEnd: "-->", insertAfter: "^<a>" };
        expect(await edited("<a>\n</a>\n", args)).to.equal(
          "<a>\n<!-- BEGIN kcore db -->\n<b/>\n<!-- END kcore db -->\n</a>\n",
        );
      });

      it("refuses half a block and two of one name, to keep and to remove, and touches nothing", async () => {
        for (const [before, found] of [
          [`x\n${open}\na\n`, "half"],
          [`a\n${close}\n`, "half"],
          [`${close}\na\n${open}\n`, "half"],
          [`${open}\n${open}\na\n${close}\n`, "half"],
          [`${open}\na\n${close}\n${open}\na\n${close}\n`, "twice"],
        ] as const)
          for (const args of [{ content: "a" }, { state: "absent" }]) {
            writeFileSync(path, before);
            const { problem, have } = await run(args);
            expect([problem?.code, have["block"]], before).to.deep.equal(["FILE_NOT_EDITABLE", found]);
            expect(readFileSync(path, "utf8")).to.equal(before);
          }
      });

      it("makes a file only when told to, and refuses a link", async () => {
        expect((await run({ state: "absent" })).outcome).to.equal("ok");
        expect((await run({ content: "a" })).problem?.code).to.equal("FILE_NOT_EDITABLE");
        expect((await run({ content: "a", create: true })).outcome).to.equal("changed");
        expect(readFileSync(path, "utf8")).to.equal(`${open}\na\n${close}\n`);
        symlinkSync(path, `${folder.path}/link`);
        const link = await run({ path: `${folder.path}/link`, content: "b" });
        expect(link.problem?.code).to.equal("FILE_IN_THE_WAY");
      });

      it("keeps the file when validate refuses", async () => {
        writeFileSync(path, "a\n");
        expect((await run({ content: "bad", validate: "! grep bad %s" })).problem?.code).to.equal("FILE_INVALID");
        expect(readFileSync(path, "utf8")).to.equal("a\n");
      });

      it("keeps secret lines out of what it tells (S-7)", async () => {
        const args = { content: secret("s3cr3t"), create: true };
        const made = await run(args);
        expect([made.outcome, made.stdout + made.stderr, statSync(path).mode & 0o777]).to.deep.equal([
          "changed",
          "",
          0o600,
        ]);
        writeFileSync(path, readFileSync(path, "utf8").replace("s3cr3t", "other"));
        expect((await run(args)).have["block"]).to.equal("different");
        expect((await run(args)).outcome).to.equal("ok");
      });
    });
});
