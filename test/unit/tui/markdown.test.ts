import { expect } from "chai";
import type { RunDigest } from "#tui/digest.ts";
import { drawMarkdown } from "#tui/markdown.ts";
import { digestOf } from "#support/digests.ts";
import { recordedRun, recordedRunNames } from "#support/recorded-runs.ts";

const digest = (name: string, state: string): RunDigest => digestOf(recordedRun(name), { state });

const change = {
  stage: "site",
  title: "page",
  module: "file.managed",
  nodes: ["w1"],
  changes: [{ name: "mode", have: "0600", want: "0644" }],
  diff: "-old\n+new\n",
};

describe("a run as Markdown", () => {
  const failed = digest("failed", "failed");
  const planned: RunDigest = {
    ...failed,
    state: "done",
    dryRun: true,
    failures: [],
    foresight: { changes: [change], unknown: [{ ...change, title: "later", reason: "after page", diff: "" }] },
  };

  it("has a heading and ends with one newline for every recorded run", () => {
    for (const name of recordedRunNames) {
      const text = drawMarkdown(digest(name, "done"));
      expect(text, name).to.match(/^### [✓◇] ` .+ `\n/);
      expect(text.endsWith("\n") && !text.endsWith("\n\n")).to.equal(true);
    }
  });

  it("has a dry run's changes with diffs, and its unknown steps", () => {
    expect(drawMarkdown(planned)).to.contain(`#### Would change

- \` site: page (file.managed) \` on \` w1 \`
  - \` mode \`: \` 0600 \` → \` 0644 \`

  \`\`\`diff
  -old
  +new
  \`\`\`

#### Unknown until earlier steps are applied

- \` site: later (file.managed) \` on \` w1 \`: \` after page \`
`);
    expect(drawMarkdown(planned)).to.match(/^### ◇/);
    expect(drawMarkdown({ ...planned, foresight: { changes: [], unknown: [] } }))
      .to.match(/^### ✓/)
      .and.not.contain("####");
  });

  it("has a failure's step, place, cause and output", () =>
    expect(drawMarkdown(failed))
      .to.match(/^### ✗/)
      .and.contain("- ` disks: install tool (command.run) ` on ` n1 ` at ` states/disks.yaml:2:5 `")
      .and.contain("  E: Unable to locate package nope\n"));

  it("has text of nodes only inside code: no fence, mention, HTML or terminal sequence", () => {
    const evil = "``` ` @all <img src=x> [a](http://b) \u001b[31m";
    const text = drawMarkdown({
      ...planned,
      title: evil,
      foresight: { changes: [{ ...change, title: evil, diff: `+${evil}\n+\`\`\`\n+# head\n` }], unknown: [] },
    });
    expect(text).not.to.contain("\u001b");
    const withoutCode = text
      .replaceAll(/^( *)(`{3,})\w+\n[^]*?\n\1\2$/gm, "")
      .replaceAll(/(?<!`)(`+) [^\n]*? \1(?!`)/g, "");
    expect(withoutCode).not.to.match(/@all|<img|http|# head/);
    expect(withoutCode).to.contain("#### Would change");
  });

  it("has at most the length of a comment, with the number of changes left out", () => {
    const many = Array.from({ length: 400 }, (_, index) => ({
      ...change,
      title: `page ${index}`,
      diff: `+${"x".repeat(100)}\n`.repeat(500),
    }));
    const text = drawMarkdown({ ...planned, warnings: [], foresight: { changes: many, unknown: [change] } });
    expect(text.length).to.be.within(40_000, 60_100);
    expect(text)
      .to.match(/… 380 more lines/)
      .and.match(/… and \d+ more: the run's report or record tells them\.\n$/);
    const shown = text.match(/^- ` site: page \d+/gm) ?? [];
    expect(shown.length + Number(/… and (\d+) more:/.exec(text)?.[1])).to.equal(401);
  });
});
