import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { fileLine } from "#engine/modules/file-line.ts";
import { runStepOn, stepOf, type StepRunOptions } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

describe("file.line", () => {
  it("wants the line, or none", () => {
    expect(stepOf(fileLine, { path: "/etc/x", line: "a = 1", match: "^a *=" }).want).to.deep.equal({
      kind: "file",
      state: "present",
      line: "a = 1",
    });
    expect(stepOf(fileLine, { path: "/etc/x", match: "^a", state: "absent" }).want).to.deep.equal({ state: "absent" });
  });

  it("refuses what could never hold or says nothing", () => {
    for (const args of [
      {},
      { line: "a\nb" },
      { line: "" },
      { line: "a = 1", match: "^b" },
      { line: "a = 1", match: "" },
      { line: "a", insertAfter: "EOF", insertBefore: "BOF" },
      { line: "a", match: "a", state: "absent" },
      { state: "absent" },
      { line: "a", state: "absent", create: true },
      { line: "a", validate: "true" },
    ])
      expect(fileLine.args.safeParse({ path: "/x", ...args }).success, JSON.stringify(args)).to.equal(false);
    expect(JSON.stringify(fileLine.args.safeParse({ path: "/x", line: "a", match: "b" }).error)).to.contain(
      "written again in each run",
    );
  });

  it("shows nothing of a secret line (S-7)", () => {
    const step = stepOf(fileLine, { path: "/etc/x", match: "^key=", line: secret("key=s3cr3t") });
    expect(JSON.stringify(step) + String(step.apply) + String(step.probe)).not.to.contain("s3cr3t");
    expect([step.sensitive, step.show, step.want["line"]]).to.deep.equal([true, undefined, "as wanted"]);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      let path: string;
      beforeEach(async () => {
        folder = await makeTempDir("line");
        path = `${folder.path}/it's a file`;
      });
      afterEach(() => folder.remove());
      const run = (args: object, options?: StepRunOptions) =>
        runStepOn(shell, stepOf(fileLine, { path, ...args }), options);
      /** What becomes of a text; a second run must change nothing. */
      async function edited(before: string, args: object): Promise<string> {
        writeFileSync(path, before);
        const first = await run(args);
        expect(first.outcome, JSON.stringify(first)).to.equal("changed");
        expect((await run(args)).outcome).to.equal("ok");
        return readFileSync(path, "utf8");
      }

      it("replaces the last line that matches, in its place, and keeps all others", async () => {
        const before = "# a=0\na=1\n\\n*  x\n\ta=2 \nb=1\n\n\n";
        const args = { match: "^[[:blank:]]*a=", line: String.raw`a=\1 &'"$x` };
        expect(await edited(before, args)).to.equal(`# a=0\na=1\n\\n*  x\n${args.line}\nb=1\n\n\n`);
      });

      it("leaves a line alone that is there, and names what it finds otherwise", async () => {
        writeFileSync(path, "x\na=1\n");
        expect((await run({ line: "a=1" })).outcome).to.equal("ok");
        const found = await run({ match: "^a=", line: "a=2" }, { dryRun: true });
        expect([found.outcome, found.have["line"], found.shown]).to.deep.equal(["would-change", "a=1", "a=1\n"]);
        expect(readFileSync(path, "utf8")).to.equal("x\na=1\n");
      });

      it("adds a line at the end, where one is named, or at the beginning", async () => {
        expect(await edited("a\nb", { line: "c" })).to.equal("a\nb\nc\n");
        expect(await edited("", { line: "c" })).to.equal("c\n");
        expect(await edited("a\nb\na\nz\n", { line: "c", insertAfter: "^a$" })).to.equal("a\nb\na\nc\nz\n");
        expect(await edited("b\na\n", { line: "c", insertAfter: "^a$" })).to.equal("b\na\nc\n");
        expect(await edited("a\nb\n", { line: "c", insertBefore: "^b" })).to.equal("a\nc\nb\n");
        expect(await edited("a\n", { line: "c", insertBefore: "BOF" })).to.equal("c\na\n");
        expect(await edited("a\n", { line: "c", insertBefore: "nowhere" })).to.equal("a\nc\n");
        expect(await edited("a\nb\n", { line: "c", insertAfter: "EOF" })).to.equal("a\nb\nc\n");
      });

      it("takes lines away, and the others that match when the line shall be the only one", async () => {
        expect(await edited("a=1\nb\n a=1\na=1\n", { line: "a=1", state: "absent" })).to.equal("b\n a=1\n");
        expect(await edited("a=1\nb\n a=1\n", { match: "a=", state: "absent" })).to.equal("b\n");
        expect(await edited("a=1\nb\na=2\nc\n", { match: "^a=", line: "a=3", unique: true })).to.equal("b\na=3\nc\n");
        expect((await run({ line: "x", state: "absent", path: `${folder.path}/none` })).outcome).to.equal("ok");
      });

      it("writes CR LF where all lines end so, and only there", async () => {
        expect(await edited("a=1\r\nb\r\n", { match: "^a=[12]$", line: "a=2" })).to.equal("a=2\r\nb\r\n");
        expect(await edited("a=1\r\nb\n", { line: "a=2" })).to.equal("a=1\r\nb\na=2\n");
      });

      it("keeps mode and owner, and makes a file only when told to", async () => {
        writeFileSync(path, "a\n");
        chmodSync(path, 0o751);
        await run({ line: "b", mode: "0600" });
        expect(statSync(path).mode & 0o7777).to.equal(0o751);
        const missing = { path: `${folder.path}/d/new`, line: "b" };
        expect((await run(missing)).problem?.code).to.equal("FILE_NOT_EDITABLE");
        expect((await run({ ...missing, create: true })).problem?.code).to.equal("FILE_NO_PARENT");
        const made = await run({ ...missing, create: true, makeDirs: true, mode: "0640", owner: "daemon" });
        expect(made.outcome, JSON.stringify(made)).to.equal("changed");
        expect([statSync(missing.path).mode & 0o777, statSync(missing.path).uid]).to.deep.equal([0o640, 1]);
        expect(readFileSync(missing.path, "utf8")).to.equal("b\n");
      });

      it("keeps the file when validate refuses, and a copy where one is wanted", async () => {
        writeFileSync(path, "a\n");
        const bad = await run({ line: "bad", validate: "! grep bad %s" });
        expect([bad.problem?.code, readFileSync(path, "utf8")]).to.deep.equal(["FILE_INVALID", "a\n"]);
        expect((await run({ line: "good", validate: "! grep bad %s", backup: true })).outcome).to.equal("changed");
        const kept = readdirSync(folder.path).find((name) => name.includes(".kcore-")) ?? "";
        expect(readFileSync(`${folder.path}/${kept}`, "utf8")).to.equal("a\n");
      });

      it("refuses links, folders, bytes that are no text and a line that its own ERE does not find", async () => {
        const code = async (args: object): Promise<unknown> => (await run(args, { dryRun: true })).problem?.code;
        writeFileSync(`${folder.path}/victim`, "mine\n");
        symlinkSync("victim", path);
        expect(await code({ line: "a" })).to.equal("FILE_IN_THE_WAY");
        mkdirSync(`${folder.path}/d`);
        expect(await code({ path: `${folder.path}/d`, line: "a" })).to.equal("FILE_IN_THE_WAY");
        expect(await code({ path: `${folder.path}/d`, line: "a", state: "absent" })).to.equal("FILE_IN_THE_WAY");
        writeFileSync(`${folder.path}/bin`, "a\0b\n");
        expect(await code({ path: `${folder.path}/bin`, line: "a" })).to.equal("FILE_NOT_EDITABLE");
        expect(await code({ path: `${folder.path}/victim`, match: String.raw`\bours`, line: "a" })).to.equal(
          "FILE_NOT_EDITABLE",
        );
        expect(readFileSync(`${folder.path}/victim`, "utf8")).to.equal("mine\n");
      });

      it("fails on an ERE that is none, and changes nothing", async () => {
        writeFileSync(path, "a\n");
        expect((await run({ match: "(a", line: "(a" })).outcome).to.equal("failed");
        expect(readFileSync(path, "utf8")).to.equal("a\n");
      });

      it("keeps a secret line out of what it tells, and knows it again (S-7)", async () => {
        const args = { match: "^key=", line: secret("key=s3cr3t"), create: true };
        const made = await run(args);
        expect([made.outcome, made.stdout + made.stderr]).to.deep.equal(["changed", ""]);
        expect([existsSync(path), statSync(path).mode & 0o777]).to.deep.equal([true, 0o600]);
        expect((await run(args)).now["line"] ?? "as wanted").to.equal("as wanted");
        writeFileSync(path, "key=other\n");
        const again = await run(args);
        expect([again.have["line"], again.outcome]).to.deep.equal(["different", "changed"]);
      });
    });
});
