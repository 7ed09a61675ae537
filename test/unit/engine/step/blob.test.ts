import { rmSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { blobOf, fileBlob, registerMaker } from "#engine/step/blob.ts";
import { problemsOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("the bytes of a fileBlob", () => {
  const at = folderOfEachTest("blob");

  /** A file whose contents differ from its blob's, at the same size; each test has its own content. */
  function damaged(content: string): { readonly file: string; readonly read: () => Promise<Uint8Array> } {
    const file = at("content");
    writeFileSync(file, "x".repeat(content.length));
    const { sha256, size } = blobOf(content);
    return { file, read: () => fileBlob({ file, sha256, size }).read() };
  }

  it("are read late, and match the hash", async () => {
    const { file, read } = damaged("as it was");
    writeFileSync(file, "as it was");
    expect(Buffer.from(await read()).toString()).to.equal("as it was");
  });

  it("are refused when the file has changed at the same size, or cannot be read", async () => {
    for (const isGone of [false, true]) {
      const { file, read } = damaged(`as it was once ${isGone}`);
      if (isGone) rmSync(file);
      const [problem] = await problemsOf(read);
      expect(problem).to.include({ code: "FILE_UNREADABLE", hint: "run again" });
      expect(problem?.message).to.contain(file);
    }
  });

  it("are made again once by the registered maker, also when the file is gone", async () => {
    for (const spoil of [(file: string) => file, (file: string) => rmSync(file)]) {
      const content = `can be made again ${String(spoil)}`;
      const { file, read } = damaged(content);
      spoil(file);
      let made = 0;
      registerMaker(file, async () => {
        made += 1;
        await Promise.resolve(writeFileSync(file, content));
      });
      const [one, other] = await Promise.all([read(), read()]);
      expect([Buffer.from(one).toString(), one === other, made]).to.deep.equal([content, true, 1]);
    }
  });

  it("are refused when the maker makes other bytes or no file", async () => {
    const { file, read } = damaged("cannot be made again");
    for (const make of [() => writeFileSync(file, "something else"), () => rmSync(file)]) {
      registerMaker(file, () => Promise.resolve(make()));
      expect((await problemsOf(read))[0]?.code).to.equal("FILE_UNREADABLE");
    }
  });
});
