import { mkdirSync, symlinkSync, writeFileSync } from "node:fs";
import { expect } from "chai";
import { changedFiles, readProjectContent } from "#engine/project/content.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("the content of a project", () => {
  const at = folderOfEachTest("content");

  it("lists the changed files, and skips a symbolic link to itself", () => {
    mkdirSync(at("states"));
    symlinkSync("loop", at("loop"));
    const before = readProjectContent(at());
    writeFileSync(at("states/web.yaml"), "steps: []\n");
    expect(changedFiles(before, readProjectContent(at()))).to.deep.equal(["states/web.yaml"]);
  });
});
