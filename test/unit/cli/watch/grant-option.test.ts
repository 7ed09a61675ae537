import { expect } from "chai";
import { Command } from "commander";
import { grantOption } from "#cli/watch/run-options.ts";
import { problemsIn } from "#support/problems.ts";

const contents = "9f2c51d07ab3e846";
const read = (...words: readonly string[]): unknown =>
  new Command()
    .addOption(grantOption())
    .parse(
      words.flatMap((word) => ["--grant", word]),
      { from: "user" },
    )
    .opts()["grant"];

describe("--grant", () => {
  it("accepts disks with their contents' fingerprints, optionally of one node, repeatedly", () => {
    const given = [`S3Z8NB0K:${contents}`, `QM 00 1:${contents}@n1`, `vg0/data:${contents}`, "S3Z8NB0K:restore"];
    expect(read(...given)).to.deep.equal(given);
  });

  it("refuses a disk without a fingerprint, and shows the form", () => {
    const [problem] = problemsIn(() => read("S3Z8NB0K"));
    expect(problem).to.contain("--grant S3Z8NB0K names no contents that may go, and so grants nothing");
    expect(problem).to.contain("--grant S3Z8NB0K:9f2c…, as the refusal of a dry run prints it");
  });

  it("refuses a malformed fingerprint or a missing name", () => {
    for (const wrong of [
      "S3Z8NB0K:x",
      `S3Z8NB0K:${contents}0`,
      `S3Z8NB0K:${contents.toUpperCase()}`,
      `:${contents}`,
      "S3Z8NB0K@n1",
    ])
      expect(
        problemsIn(() => read(wrong)),
        wrong,
      ).to.have.length(1);
  });
});
