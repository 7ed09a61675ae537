import { expect } from "chai";
import { execFileSync } from "node:child_process";
import { chmodSync, mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { openStateFiles } from "#engine/states/state-files.ts";
import type { FolderEntry } from "#engine/step/define.ts";
import { planTree } from "#engine/step/fragments/tree-plan.ts";
import { problemsOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const modeOf = ({ kind, isProgram }: FolderEntry): number => (kind === "folder" ? 0o750 : isProgram ? 0o755 : 0o644);

describe("a folder of the project", () => {
  const at = folderOfEachTest("source");
  beforeEach(() => mkdirSync(at("site/a/b"), { recursive: true }));
  const files = () => openStateFiles([{ path: at(""), shown: ".", origin: "project" }]);
  const names = (...exclude: readonly string[]): string =>
    files()
      .folder("site", exclude)
      .map(({ name }) => name)
      .join(" ");

  it("is listed folder by folder, without what a glob names or its folder", () => {
    for (const name of ["z", "a.log", "a/x", "a/b/y.log", "a-b", ".kcore-x"]) writeFileSync(at(`site/${name}`), "");
    expect(names()).to.equal("a a-b a.log z a/b a/x a/b/y.log");
    expect(names("*.log", "a/?")).to.equal("a a-b z");
    expect(names("a/b/*", "z")).to.equal("a a-b a.log a/b a/x");
  });

  it("is read once for all nodes of a run", () => {
    const all = files();
    writeFileSync(at("site/x"), "1");
    const [list] = [all.folder("site", [])];
    writeFileSync(at("site/x"), "2");
    expect(all.folder("site", [])).to.equal(list);
    expect(all.folder("site", ["y"])).not.to.equal(list);
  });

  it("is refused with every entry that cannot go", async () => {
    symlinkSync("../a", at("site/a/inside"));
    symlinkSync("../../site/a", at("site/a/out"));
    symlinkSync("/etc", at("site/absolute"));
    writeFileSync(at("site/line\nbreak"), "");
    execFileSync("mkfifo", [at("site/fifo")]);
    const found = await problemsOf(() => names());
    expect(found.map(({ code }) => code)).to.deep.equal(Array(4).fill("FOLDER_INVALID"));
    expect(found.map(({ message }) => message).join("\n")).to.match(
      /site\/absolute is a link out.*\nsite\/fifo is neither.*\n"site\/line\\nbreak" has a line break.*\nsite\/a\/out is a link out/,
    );
    expect((await problemsOf(() => files().folder("../site", [])))[0]?.code).to.equal("FILE_UNREADABLE");
    expect((await problemsOf(() => files().folder("none", [])))[0]?.message).to.equal(
      "no folder “none” in the project",
    );
  });

  it("goes in archives of 64 KiB where few files differ, and of 4 MiB; a change of a file during the run is refused", async () => {
    for (let count = 0; count < 100; count++) writeFileSync(at(`site/a/${count}`), "x".repeat(10_000));
    writeFileSync(at("site/large"), "x".repeat(5 << 20));
    const plan = planTree(files().folder("site", []), modeOf, "site");
    const lines = String(await plan.list.read()).split("\n");
    const ranges = (kind: string) =>
      lines.filter((line) => line.startsWith(kind)).map((line) => line.split(" ").slice(1, 3).join("-"));
    expect(ranges("G ")).to.deep.equal(["1-1", "2-2", "3-103"]);
    expect(ranges("g ").slice(0, 3)).to.deep.equal(["1-1", "2-2", "3-8"]);
    expect(Math.max(...plan.archives.map(({ size }) => size))).to.equal((5 << 20) + 512);
    const [, large] = plan.archives;
    writeFileSync(at("site/large"), "y");
    expect((await problemsOf(() => large?.read())).map(({ message }) => message)).to.deep.equal([
      "site changed while the run went on",
    ]);
  });

  it("is a tar file as tar(1) reads it, with long names and links", async () => {
    const long = "n".repeat(120);
    mkdirSync(at(`site/${long}`));
    writeFileSync(at(`site/${long}/é it's`), "content");
    chmodSync(at(`site/${long}/é it's`), 0o700);
    symlinkSync(`${long}/é it's`, at("site/link"));
    const plan = planTree(files().folder("site", []), modeOf, "site");
    mkdirSync(at("out"));
    const input = Buffer.concat([(await plan.archives[0]?.read()) ?? Buffer.alloc(0), Buffer.alloc(1024)]);
    for (const tar of [["tar"], ["busybox", "tar"]]) {
      execFileSync("sh", ["-c", `rm -rf out && mkdir out && cd out && ${tar.join(" ")} -x -p -o -m -f -`], {
        cwd: at(""),
        input,
      });
      execFileSync("diff", ["-r", "--no-dereference", "site", "out"], { cwd: at("") });
      expect(
        execFileSync("stat", ["-c", "%a", `out/${long}`, `out/${long}/é it's`], { cwd: at(""), encoding: "utf8" }),
      ).to.equal("750\n755\n");
    }
  });
});
