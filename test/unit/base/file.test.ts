import { readdir, readFile, stat, symlink, writeFile } from "node:fs/promises";
import { expect } from "chai";
import { createFile, placeFile, replaceFile, replaceFileSync } from "#base/file.ts";
import { makeFolder } from "#base/folder.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a file that is replaced or created", () => {
  const folder = folderOfEachTest("file");
  let file = "";
  beforeEach(() => writeFile((file = folder("file")), "old", { mode: 0o644 }));

  for (const replace of [replaceFile, replaceFileSync])
    it(`${replace.name}: has the new content and mode, or an error with its path, and leaves no temporary file`, async () => {
      await replace(file, "new");
      expect([await readFile(file, "utf8"), (await stat(file)).mode & 0o777]).to.deep.equal(["new", 0o600]);
      const taken = folder("taken");
      await makeFolder(`${taken}/below`);
      const error = await (async () => replace(taken, "new"))().catch((caught: unknown) => caught as Error);
      expect(error?.message).to.contain(`'${taken}'`).and.not.contain(".tmp");
      expect(await readdir(folder())).to.deep.equal(["file", "taken"]);
    });

  it("keeps the old content if the new content breaks off or is refused before the rename", async () => {
    const fail = async (): Promise<never> => {
      throw new Error("cut");
    };
    const half = async function* (): AsyncGenerator<string> {
      yield "half";
      await fail();
    };
    for (const work of [replaceFile(file, half()), replaceFile(file, "new", { before: fail })])
      expect(await work.catch((error: Error) => error.message)).to.equal("cut");
    expect([await readFile(file, "utf8"), await readdir(folder())]).to.deep.equal(["old", ["file"]]);
  });

  it("is never created through a link or over a file", async () => {
    await symlink(folder("elsewhere"), folder("link"));
    for (const path of [file, folder("link")])
      expect(await createFile(path, "new").catch((error: NodeJS.ErrnoException) => error.code)).to.equal("EEXIST");
    expect(await readdir(folder())).to.deep.equal(["file", "link"]);
  });
});

describe("placeFile", () => {
  const folder = folderOfEachTest("file");

  it("moves a complete file over another, and refuses a symbolic link", async () => {
    const [complete, file] = [folder("complete"), folder("file")];
    await writeFile(complete, "new");
    await writeFile(file, "old");
    await placeFile(complete, file);
    expect([await readFile(file, "utf8"), await readdir(folder())]).to.deep.equal(["new", ["file"]]);
    await symlink(file, complete);
    expect(await placeFile(complete, file).catch((error: NodeJS.ErrnoException) => error.code)).to.equal("ELOOP");
  });
});
