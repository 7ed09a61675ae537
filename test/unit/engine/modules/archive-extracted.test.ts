import { execFileSync, spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  linkSync,
  lstatSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { dirname, join } from "node:path";
import { expect } from "chai";
import { blobOf } from "#engine/step/blob.ts";
import { archiveExtracted } from "#engine/modules/archive-extracted.ts";
import { stepKey } from "#engine/program/compile-step.ts";
import { contextOf, runStepOn, stepOf, type StepRun } from "#support/steps.ts";
import { shellsOf } from "#support/shells.ts";
import { makeTempDir, type TempDir } from "#support/temp-dir.ts";

/** A tar of one entry with a name or target that tar itself would not write (POSIX ustar). */
function rawTar(
  ...entries: readonly { name: string; type?: string; link?: string; mode?: string; text?: string }[]
): Buffer {
  const blocks = entries.flatMap(({ name, type = "0", link = "", mode = "0000644", text = "" }) => {
    const head = Buffer.alloc(512);
    head.write(name, 0);
    for (const [at, field] of [
      [100, mode],
      [108, "0000000"],
      [116, "0000000"],
      [124, text.length.toString(8).padStart(11, "0")],
      [136, "00000000000"],
      [148, "        "],
      [156, type],
      [157, link],
      [257, "ustar\u000000"],
    ] as const)
      head.write(field, at);
    head.write(
      `${head
        .reduce((sum, byte) => sum + byte, 0)
        .toString(8)
        .padStart(6, "0")}\0 `,
      148,
    );
    const body = Buffer.alloc(Math.ceil(text.length / 512) * 512);
    body.write(text);
    return [head, body];
  });
  return Buffer.concat([...blocks, Buffer.alloc(1024)]);
}

describe("archive.extracted", () => {
  it("wants what came from this archive, whole", () => {
    const context = contextOf({ files: { "a.tgz": "x" } });
    expect(
      stepOf(archiveExtracted, { path: "/opt/a", source: "a.tgz", strip: 1, owner: "app" }, context).want,
    ).to.deep.equal({
      kind: "directory",
      archive: `sha256:${blobOf("x").sha256}`,
      as: "app:root, strip 1",
      tree: "whole",
    });
    const { want, tools } = stepOf(archiveExtracted, { path: "/opt/a", archive: "/a.tar.zst" });
    expect([want["archive"], tools?.map(({ package: name }) => name)]).to.deep.equal([
      "as on the node",
      ["zstd", "tar"],
    ]);
  });

  it("refuses arguments that leave it open what to do", () => {
    for (const args of [
      {},
      { source: "a.tgz", archive: "/a.tgz" },
      { source: "a" },
      { source: "a.tgz", sha256: blobOf("").sha256 },
      { source: "a.tgz", path: "/" },
      { source: "a.tgz", path: "/a/../b" },
      { source: "a.rar", format: "rar" },
    ])
      expect(archiveExtracted.args.safeParse({ path: "/a", ...args }).success, JSON.stringify(args)).to.equal(false);
  });

  for (const shell of shellsOf(import.meta.filename))
    describe(`on ${shell}`, () => {
      let folder: TempDir;
      const at = (...names: string[]): string => join(folder.path, ...names);
      beforeEach(async () => {
        folder = await makeTempDir("archive");
        for (const [name, text] of [
          ["in/top-1/bin/it's here", "one\n"],
          ["in/top-1/share/a b", "two\n"],
        ] as const) {
          mkdirSync(dirname(at(name)), { recursive: true });
          writeFileSync(at(name), text);
        }
        chmodSync(at("in/top-1/bin/it's here"), 0o775);
        symlinkSync("../share/a b", at("in/top-1/bin/link"));
        linkSync(at("in/top-1/share/a b"), at("in/top-1/share/hard"));
      });
      afterEach(() => folder.remove());
      const pack = (name: string, ...words: string[]): void => {
        if (name.endsWith(".zip")) execFileSync("zip", ["-qry", at(name), "."], { cwd: at("in") });
        else execFileSync("tar", ["-C", at("in"), "-caf", at(name), ...(words.length > 0 ? words : ["."])]);
      };
      const run = (args: object = {}, options: object = {}): Promise<StepRun> =>
        runStepOn(shell, stepOf(archiveExtracted, { path: at("out"), archive: at("a.tar.gz"), ...args }), options);
      const untouched = (): string[] =>
        readdirSync(folder.path).filter((name) => name.startsWith(".") || name === "out");

      for (const format of ["tar.gz", "tar.xz", "tar.zst", "tar", "zip"])
        it(`unpacks ${format}, strips the folder around it, and is in order then`, async function () {
          if (format === "zip" && spawnSync("zip", ["-h"]).error) this.skip();
          pack(`a.${format}`);
          const args = { archive: at(`a.${format}`), strip: 1 };
          const dry = await run(args, { dryRun: true });
          expect([dry.outcome, dry.have, untouched()], JSON.stringify(dry)).to.deep.equal([
            "would-change",
            { kind: "absent" },
            [],
          ]);
          const done = await run(args);
          // BusyBox takes its own unzip first.
          if (format === "zip" && shell.startsWith("busybox")) {
            expect([done.problem?.code, untouched()], JSON.stringify(done)).to.deep.equal(["TOOL_MISSING", []]);
            return;
          }
          expect(done.outcome, JSON.stringify(done)).to.equal("changed");
          expect(readFileSync(at("out/bin/link"), "utf8")).to.equal("two\n");
          expect(lstatSync(at("out/bin/it's here")).mode & 0o777).to.equal(0o755);
          expect(untouched()).to.deep.equal(["out"]);
          expect((await run(args)).outcome).to.equal("ok");
        });

      it("takes the place of an earlier archive as a whole; a blob does, too", async () => {
        pack("a.tar.gz");
        await run();
        rmSync(at("in/top-1/share"), { recursive: true });
        pack("b.tar");
        const text = readFileSync(at("b.tar"), "latin1");
        const step = stepOf(
          archiveExtracted,
          { path: at("out"), source: "b.tar" },
          contextOf({ files: { "b.tar": text } }),
        );
        const done = await runStepOn(shell, step);
        expect(done.outcome, JSON.stringify(done)).to.equal("changed");
        expect([readdirSync(at("out/top-1")), untouched()]).to.deep.equal([["bin"], ["out"]]);
      });

      it("names what is gone or changed, and unpacks again", async () => {
        pack("a.tar.gz");
        await run({ strip: 1 });
        rmSync(at("out/share/a b"));
        writeFileSync(at("out/bin/it's here"), "changed\n");
        const drift = await run({ strip: 1 });
        expect(drift.have["tree"]).to.match(/^gone or changed: (?=.*it's here).*share\/a b/);
        expect([drift.outcome, readFileSync(at("out/bin/it's here"), "utf8")]).to.deep.equal(["changed", "one\n"]);
        rmSync(at("out/bin"), { recursive: true });
        rmSync(at("out/share"), { recursive: true });
        expect((await run({ strip: 1 }, { dryRun: true })).outcome).to.equal("would-change");
      });

      it("loses nothing that others put there", async () => {
        pack("a.tar.gz");
        mkdirSync(at("out"));
        writeFileSync(at("out/mine"), "");
        expect((await run({ clean: true }, { dryRun: true })).problem?.code).to.equal("FILE_NOT_EMPTY");
        rmSync(at("out/mine"));
        expect((await run()).outcome).to.equal("changed");
        writeFileSync(at("out/top-1/data base"), "");
        expect((await run()).outcome).to.equal("ok");
        pack("a.tar.gz", "./top-1/share");
        const refused = await run();
        expect([refused.problem?.code, refused.problem?.detail], JSON.stringify(refused)).to.satisfy(
          ([code, detail]: string[]) => code === "FILE_NOT_EMPTY" && detail?.includes("./top-1/data base") === true,
        );
        expect(existsSync(at("out/top-1/bin"))).to.equal(true);
        expect((await run({ clean: true })).outcome).to.equal("changed");
        expect(existsSync(at("out/top-1/data base"))).to.equal(false);
      });

      it("refuses what would leave the folder or be more than files, and leaves nothing (S-21)", async () => {
        const outside = at("outside");
        writeFileSync(outside, "safe");
        const hostile = {
          absolute: [{ name: outside, text: "x" }],
          climbing: [{ name: "a/../../outside", text: "x" }],
          "link out": [{ name: "l", type: "2", link: "../outside" }],
          "absolute link": [{ name: "d/l", type: "2", link: outside }],
          "through a link": [
            { name: "l", type: "2", link: "." },
            { name: "l/outside", text: "x" },
          ],
          "hard link out": [{ name: "h", type: "1", link: outside }],
          "hard link up": [{ name: "h", type: "1", link: "a/../../outside" }],
          device: [{ name: "null", type: "3" }],
          fifo: [{ name: "f", type: "6" }],
          setuid: [{ name: "s", mode: "0004755", text: "x" }],
          setgid: [{ name: "s", mode: "0002755", text: "x" }],
        };
        for (const [what, entries] of Object.entries(hostile)) {
          writeFileSync(at("a.tar"), rawTar({ name: "good", text: "good" }, ...entries));
          const { problem } = await run({ archive: at("a.tar") });
          expect(problem?.code, `${what}: ${JSON.stringify(problem)}`).to.equal("ARCHIVE_UNSAFE");
          expect(untouched(), what).to.deep.equal([]);
        }
        expect(readFileSync(outside, "utf8")).to.equal("safe");
      });

      it("takes links that stay inside, wherever they lie, but not out of what is stripped", async () => {
        writeFileSync(
          at("a.tar"),
          rawTar(
            { name: "top/b/c", text: "x" },
            { name: "top/b/l", type: "2", link: "../b/./c" },
            { name: "top/m", type: "2", link: "../top/b" },
          ),
        );
        expect((await run({ archive: at("a.tar") })).outcome).to.equal("changed");
        expect(readlinkSync(at("out/top/b/l"))).to.equal("../b/./c");
        expect((await run({ archive: at("a.tar"), strip: 1, path: at("second") })).problem?.code).to.equal(
          "ARCHIVE_UNSAFE",
        );
      });

      it("refuses an archive that is cut, is another one, is not there, or has more to strip than folders", async () => {
        pack("a.tar.gz");
        const code = async (args: object): Promise<string | undefined> => (await run(args)).problem?.code;
        expect(await code({ sha256: blobOf("").sha256 })).to.equal("ARCHIVE_INVALID");
        expect(await code({ strip: 2 })).to.equal("ARCHIVE_INVALID");
        expect(await code({ archive: at("none.tar") })).to.equal("ARCHIVE_INVALID");
        const bytes = readFileSync(at("a.tar.gz"));
        writeFileSync(at("a.tar.gz"), bytes.subarray(0, bytes.length / 2));
        expect(await code({})).to.equal("ARCHIVE_INVALID");
        expect(untouched()).to.deep.equal([]);
      });

      it("takes away what a killed step left beside the folder", async () => {
        pack("a.tar.gz");
        mkdirSync(at(`.kcore-${stepKey("test/step")}-abcdef/t/sub`), { recursive: true, mode: 0o700 });
        expect([(await run()).outcome, untouched()]).to.deep.equal(["changed", ["out"]]);
      });
    });
});
