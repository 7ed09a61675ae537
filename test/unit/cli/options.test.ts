import { expect } from "chai";
import { parseAge } from "#cli/options.ts";

describe("parseAge", () => {
  it("gives milliseconds for minutes, hours, days and weeks, and refuses other texts", () => {
    expect(["90m", "36h", "30d", "8w"].map(parseAge)).to.deep.equal([
      5_400_000, 129_600_000, 2_592_000_000, 4_838_400_000,
    ]);
    for (const text of ["30s", "500ms", "1.5h", "30", "d", "-1d"])
      expect(() => parseAge(text), text).to.throw("an age is wanted");
  });
});
