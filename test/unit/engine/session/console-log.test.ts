import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { expect } from "chai";
import { consoleEnd } from "#engine/session/console-log.ts";
import { rebootTooLong } from "#engine/session/problems.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

describe("the end of a node's console", () => {
  const at = folderOfEachTest("console");
  const logOf = (bytes: string): string => {
    const file = at("console.log");
    writeFileSync(file, bytes);
    return file;
  };

  it("is the last screen of the log, from the beginning of a line", () => {
    const end =
      consoleEnd(logOf(`${"boot 1 is long ago\r\n".repeat(10_000)}mount: wrong fs type\r\n\r\n(initramfs) `)) ?? "";
    expect(end.split("\n").slice(-2)).to.deep.equal(["mount: wrong fs type", "(initramfs)"]);
    expect(end.length).to.be.within(1_000, 1_500);
    expect(end).to.match(/^boot 1/);
  });

  it("contains no terminal escape sequences", () =>
    expect(consoleEnd(logOf("\u001b[2J\u001b]0;owned\u0007\u001b[1mlogin:\u001b[0m \u0008"))).to.equal("login: \\x08"));

  it("is undefined for an empty file, a missing file, a folder and a FIFO", () => {
    expect([consoleEnd(logOf(" \n\n")), consoleEnd(at("none"))]).to.deep.equal([undefined, undefined]);
    expect(consoleEnd(at())).to.equal(undefined);
    spawnSync("mkfifo", [at("fifo")]);
    expect(consoleEnd(at("fifo"))).to.equal(undefined);
  });

  it("is a detail of the problem of a node that does not come back", () => {
    expect(rebootTooLong({ node: "n1", console: () => "(initramfs)" }, 30_000, "n1 does not answer").detail).to.equal(
      "last seen: n1 does not answer\nlast on its console:\n(initramfs)",
    );
  });
});
