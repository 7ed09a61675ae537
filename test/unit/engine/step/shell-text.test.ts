import { expect } from "chai";
import { shellOf, textAmong } from "#engine/step/shell-text.ts";

describe("textAmong finds the shell text of a command's words", () => {
  for (const words of [
    ["sh", "-c", "TEXT"],
    ["/usr/bin/env", "bash", "-ce", "TEXT", "a"],
    ["dash", "-cx", "TEXT"],
    ["bash", "-ecl", "TEXT"],
    ["sh", "-c", "--", "TEXT"],
    ["bash", "-c", "-e", "TEXT"],
    ["bash", "-c", "+x", "--", "TEXT"],
    ["bash", "-euo", "pipefail", "-c", "TEXT"],
    ["bash", "-ceuo", "pipefail", "TEXT"],
    ["su", "-", "u", "-c", "TEXT"],
    ["runuser", "-u", "u", "-c", "TEXT"],
    ["/sbin/runuser", "u", "--command", "TEXT"],
    ["su", "--session-command", "TEXT"],
  ])
    it(words.join(" "), () => expect(textAmong(words)).to.equal(words.indexOf("TEXT")));

  it("returns undefined where no shell reads a text", () => {
    for (const words of [
      ["sh", "a.sh"],
      ["cat", "-c", "a"],
      ["sh", "-c"],
      ["sh", "-c", "--"],
      // `[sh, foo: bar]` in YAML, where the second word is a map.
      ["sh", Object.create(null) as object],
    ])
      expect(textAmong(words), JSON.stringify(words)).to.equal(undefined);
    expect(["/usr/sbin/runuser", "/bin/su", "/bin/dash", "push"].map(shellOf)).to.deep.equal([
      "sh",
      "sh",
      "dash",
      undefined,
    ]);
  });
});
