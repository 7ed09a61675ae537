import { mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { expect } from "chai";
import { createFile } from "#base/file.ts";
import { createFolder, replaceFolder } from "#base/folder.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("a folder that is created or replaced", () => {
  const above = folderOfEachTest("folder");
  let path = "";
  beforeEach(() => void (path = above("place")));
  const fill = async (fresh: string): Promise<void> => {
    await mkdir(join(fresh, "below"));
    await createFile(join(fresh, "below", "file"), "new");
  };
  const content = async () => [await readdir(above()), await readFile(join(path, "below", "file"), "utf8")];

  for (const make of [createFolder, replaceFolder])
    it(`${make.name}: appears with all of its content`, async () => {
      await make(path, fill);
      expect(await content()).to.deep.equal([["place"], "new"]);
    });

  it("is kept by createFolder and replaced by replaceFolder if it exists", async () => {
    await mkdir(path);
    await writeFile(join(path, "former"), "old");
    const code = await createFolder(path, fill).catch((error: NodeJS.ErrnoException) => error.code);
    expect([code, await readdir(above()), await readdir(path)]).to.deep.equal(["ENOTEMPTY", ["place"], ["former"]]);
    await replaceFolder(path, fill);
    expect([await content(), await readdir(path)]).to.deep.equal([[["place"], "new"], ["below"]]);
  });

  it("stays as it was if filling the new one fails or the rename fails", async () => {
    await mkdir(path);
    await writeFile(join(path, "former"), "old");
    const cut = async (): Promise<never> => {
      throw new Error("cut");
    };
    const lose = (fresh: string): Promise<void> => rm(fresh, { recursive: true });
    for (const broken of [cut, lose]) {
      expect(await replaceFolder(path, broken).catch(() => "failed")).to.equal("failed");
      expect([await readdir(above()), await readdir(path)]).to.deep.equal([["place"], ["former"]]);
    }
  });
});
