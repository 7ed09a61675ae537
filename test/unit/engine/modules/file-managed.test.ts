import {
  existsSync,
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect } from "chai";
import { secret } from "#engine/step/secret.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import { contextOf, runStepOn, stepOf } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";

const sha256OfHi = "98ea6e4f216f2fb4b69fff9b3a44842c38686ca685f3f55dc48c5d3fb1107be4";

describe("file.managed", () => {
  it("wants content, mode and owner, and says them as data", () => {
    const step = stepOf(fileManaged, { path: "/etc/x", content: "hi\n", mode: "0640", owner: "root" });
    expect(step.want).to.deep.equal({ kind: "file", content: `sha256:${sha256OfHi}`, mode: "0640", owner: "root" });
    expect(step.data).to.deep.include({ kind: "file", path: "/etc/x", mode: "0640", owner: "root", makeDirs: false });
    expect(step.data).to.have.nested.property("blob.sha256", sha256OfHi);
    expect(step.shown).to.equal("hi\n");
  });

  it("takes the bytes from a template, a file of the project or base64", () => {
    const context = contextOf({
      files: { "files/hi": "hi\n" },
      renderTemplate: (name, vars) => `${name} ${String(vars?.["a"])}`,
    });
    const wanted = (args: object): string | undefined =>
      stepOf(fileManaged, { path: "/x", ...args }, context).want["content"];
    expect(wanted({ source: "files/hi" })).to.equal(`sha256:${sha256OfHi}`);
    expect(wanted({ base64: "aGkK" })).to.equal(`sha256:${sha256OfHi}`);
    expect(stepOf(fileManaged, { path: "/x", template: "t.hbs", vars: { a: 1 } }, context).shown).to.equal("t.hbs 1");
  });

  it("refuses no content, two contents, vars without a template and a validate without %s", () => {
    for (const args of [
      {},
      { content: "", source: "x" },
      { content: "", vars: {} },
      { content: "", validate: "true" },
      { content: "", mode: 640 },
    ])
      expect(fileManaged.args.safeParse({ path: "/x", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  it("shows nothing of a secret content, not even its hash (S-7)", () => {
    const step = stepOf(fileManaged, { path: "/etc/x", content: secret("hi\n") });
    const seen = JSON.stringify([step, String(step.probe), String(step.apply), step.apply?.masked]);
    expect(seen).not.to.contain(sha256OfHi.slice(0, 12));
    expect(step.want).to.deep.equal({ kind: "file", content: "as wanted", mode: "0600" });
    expect([step.sensitive, step.show, step.data]).to.deep.equal([true, undefined, undefined]);
    expect(step.apply?.blobs.every(({ sensitive }) => sensitive)).to.equal(true);
  });

  it("treats any content as secret when the step is sensitive (S-7)", () => {
    expect(stepOf(fileManaged, { path: "/x", content: "a" }, contextOf({ sensitive: true })).want["content"]).to.equal(
      "as wanted",
    );
    expect(stepOf(fileManaged, { path: "/x", content: "a", sensitive: true }).want["content"]).to.equal("as wanted");
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: string;
      let path: string;
      beforeEach(() => {
        folder = mkdtempSync(join(tmpdir(), "kcore-file-"));
        path = join(folder, "it's a file");
      });
      afterEach(() => rmSync(folder, { recursive: true }));

      it("writes a file, and finds it in order afterwards (S-6)", async () => {
        const step = stepOf(fileManaged, { path, content: "hi\n", mode: "0640", owner: "daemon", group: "0" });
        const run = await runStepOn(shell, step);
        expect([run.outcome, run.have]).to.deep.equal(["changed", { kind: "absent" }]);
        expect(readFileSync(path, "utf8")).to.equal("hi\n");
        expect(statSync(path).mode & 0o7777).to.equal(0o640);
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
        expect(readdirSync(folder)).to.deep.equal(["it's a file"]);
      });

      it("mends a changed text, shows what was there, and keeps a mode that it does not manage", async () => {
        writeFileSync(path, "old\n", { mode: 0o751 });
        const run = await runStepOn(shell, stepOf(fileManaged, { path, content: "hi\n", backup: true }));
        expect([run.outcome, run.shown]).to.deep.equal(["changed", "old\n"]);
        expect(statSync(path).mode & 0o7777).to.equal(0o751);
        const kept = readdirSync(folder).find((name) => name.includes(".kcore-")) ?? "";
        expect(readFileSync(join(folder, kept), "utf8")).to.equal("old\n");
      });

      it("changes nothing in a dry run", async () => {
        const run = await runStepOn(shell, stepOf(fileManaged, { path, content: "hi\n" }), { dryRun: true });
        expect([run.outcome, existsSync(path)]).to.deep.equal(["would-change", false]);
      });

      it("replaces a planted link and leaves what it points to alone (S-6)", async () => {
        writeFileSync(join(folder, "victim"), "mine");
        symlinkSync(join(folder, "victim"), path);
        expect((await runStepOn(shell, stepOf(fileManaged, { path, content: "hi\n" }))).outcome).to.equal("changed");
        expect(lstatSync(path).isFile()).to.equal(true);
        expect(readFileSync(join(folder, "victim"), "utf8")).to.equal("mine");
      });

      it("refuses a folder in the way", async () => {
        mkdirSync(path);
        const run = await runStepOn(shell, stepOf(fileManaged, { path, content: "hi\n" }), { dryRun: true });
        expect([run.outcome, run.problem?.code]).to.deep.equal(["failed", "FILE_IN_THE_WAY"]);
      });

      it("keeps the old file when validate rejects the new one, and says why", async () => {
        writeFileSync(path, "old\n");
        const step = stepOf(fileManaged, { path, content: "bad\n", validate: "! grep bad %s" });
        const run = await runStepOn(shell, step);
        expect([run.problem?.code, run.problem?.detail]).to.deep.equal(["FILE_INVALID", "bad"]);
        expect(readFileSync(path, "utf8")).to.equal("old\n");
        expect(
          (await runStepOn(shell, stepOf(fileManaged, { path, content: "good\n", validate: "! grep bad %s" }))).outcome,
        ).to.equal("changed");
      });

      it("makes the folders above only when told to", async () => {
        const deep = join(folder, "a/b/c");
        const refused = await runStepOn(shell, stepOf(fileManaged, { path: deep, content: "" }));
        expect(refused.problem?.code).to.equal("FILE_NO_PARENT");
        expect(
          (await runStepOn(shell, stepOf(fileManaged, { path: deep, content: "", makeDirs: true }))).outcome,
        ).to.equal("changed");
      });

      it("keeps the old file and leaves nothing behind when the disk is full (F-5)", async () => {
        const report = join(folder, "report");
        const disk = join(folder, "disk");
        mkdirSync(disk);
        const full = `unshare -m sh -c 'mount -t tmpfs -o size=16k none ${disk} && echo old >${disk}/f; "$@"; s=$?; { ls -A ${disk}; cat ${disk}/f; } >${report}; exit $s' sh ${shell}`;
        const run = await runStepOn(full, stepOf(fileManaged, { path: join(disk, "f"), content: "x".repeat(60_000) }));
        expect([run.outcome, readFileSync(report, "utf8")], run.stderr).to.deep.equal(["failed", "f\nold\n"]);
        expect(run.stderr).to.contain("No space left on device");
      });

      it("leaves the old file whole when it is killed before the rename (F-19)", async () => {
        if (shell === "busybox sh") return; // its own mv cannot be replaced
        writeFileSync(path, "old\n");
        const bin = { mv: "kill -9 $PPID" };
        expect((await runStepOn(shell, stepOf(fileManaged, { path, content: "new\n" }), { bin })).outcome).to.equal(
          "failed",
        );
        expect(readFileSync(path, "utf8")).to.equal("old\n");
      });

      it("drops a secret, 0600, and knows it again (S-7)", async () => {
        const step = stepOf(fileManaged, { path, content: secret("p4ss'word\n") });
        const run = await runStepOn(shell, step);
        expect([run.outcome, run.stdout, run.stderr]).to.deep.equal(["changed", "", ""]);
        expect(readFileSync(path, "utf8")).to.equal("p4ss'word\n");
        expect(statSync(path).mode & 0o7777).to.equal(0o600);
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
      });
    });
});
