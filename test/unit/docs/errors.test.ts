import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { errorCodes, root } from "#support/pages.ts";

const documented = [...readFileSync(join(root, "docs/errors.md"), "utf8").matchAll(/^\| ([A-Z][A-Z0-9_]+) +\|/gm)]
  .map(([, code = ""]) => code)
  .filter((code) => code !== "CODE");
const known = errorCodes();

describe("docs/errors.md", () => {
  it("explains each code that there is, once", () =>
    expect(documented.toSorted()).to.deep.equal(known.toSorted()));

  it("V11: no other page names a code that there is not in a table of its own", () => {
    const page = readFileSync(join(root, "docs/troubleshooting.md"), "utf8");
    const named = [...page.matchAll(/^\| ([A-Z][A-Z0-9]*_[A-Z0-9_]+) +\|/gm)].map(([, code = ""]) => code);
    expect(named).not.to.have.length(0);
    expect(named.filter((code) => !known.includes(code))).to.deep.equal([]);
  });
});
