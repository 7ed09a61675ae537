import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { withRow } from "../../../scripts/new-module.ts";

describe("npm run new:module", () => {
  it("puts the row among the arguments of the other modules, and not into the table of platforms", () => {
    const page = readFileSync(join(import.meta.dirname, "../../../docs/modules.md"), "utf8");
    for (const [name, before] of [
      ["aaa.first", "| --- | --- | --- |"],
      ["command.rum", "| command.run "],
      ["zzz.last", "| zfs.pool "],
    ] as const) {
      const lines = withRow(page, name, `| ${name} | new |`).split("\n");
      const at = lines.indexOf(`| ${name} | new |`);
      expect(lines.slice(0, at)).not.to.include("## Platforms");
      expect(lines[name === "command.rum" ? at + 1 : at - 1]).to.satisfy((line: string) => line.startsWith(before));
      expect(lines.toSpliced(at, 1).join("\n")).to.equal(page);
    }
  });
});
