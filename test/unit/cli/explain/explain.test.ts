import { expect } from "chai";
import { explainedCodes } from "#cli/explain/explain-command.ts";
import { errorCodes } from "#support/pages.ts";

describe("kcore explain", () => {
  it("has a meaning and a remedy for every code", () => {
    const explained = explainedCodes();
    expect(explained.map(({ code }) => code)).to.have.members(errorCodes());
    expect(explained.filter(({ meaning, whatToDo }) => meaning === "" || whatToDo === "")).to.deep.equal([]);
  });

  it("shows the unescaped text of the table's cells", () => {
    expect(explainedCodes().find(({ code }) => code === "DISK_HAS_DATA")?.whatToDo).to.contain("--grant");
    expect(explainedCodes().filter(({ meaning, whatToDo }) => `${meaning}${whatToDo}`.includes("\\|"))).to.deep.equal(
      [],
    );
  });
});
