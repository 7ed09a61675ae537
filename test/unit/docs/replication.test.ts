import { expect } from "chai";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

const root = join(import.meta.dirname, "../../..");

describe("docs/replication.md", () => {
  it("makes the promise that each file of replication names in its first line, with what the file does for it", () => {
    const page = readFileSync(join(root, "docs/replication.md"), "utf8");
    const promises = Array.from(page.matchAll(/^- \*\*(.+?)[.,]?\*\*/gm), ([, name]) => name);
    const files = globSync("src/controller/replica/*.ts", { cwd: root });
    const named = files.map((file) => {
      const [first = ""] = readFileSync(join(root, file), "utf8").split("\n");
      return [file, /^\/\/ “(.+)” \(docs\/replication\.md\): .+\.$/.exec(first)?.[1]] as const;
    });
    expect(named.filter(([, name]) => name === undefined || !promises.includes(name))).to.deep.equal([]);
    expect(named.length).to.be.greaterThan(0);
  });
});
