import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";

const root = join(import.meta.dirname, "../../..");
const read = (path: string): string => readFileSync(join(root, path), "utf8");
const page = read("docs/runner.md");
const [follower, hello, runner, extras, trial, verdict, apply, functions, step, batch, look] = [
  "follower",
  "state-folder",
  "runner",
  "runner-on-demand",
  "trial-runner",
  "dry-run-verdict",
  "apply",
  "step-functions",
  "step",
  "batch",
  "look",
].map((name) => read(`src/engine/program/${name}.sh`));

/** Words in the first column of the table that follows this text of the page. */
function column(before: string): string[] {
  const [, rest = ""] = page.split(before);
  const [table = ""] = /\n\|(?:.*\n\|)*.*/.exec(rest) ?? [];
  const rows = table.trim().split("\n").slice(2);
  return rows.flatMap((row) => [...(row.split("|")[1] ?? "").matchAll(/`([a-z-]+)/g)].map(([, word = ""]) => word));
}

/** The different matches of the pattern's group. */
function words(text: string | undefined, pattern: RegExp): string[] {
  return [...new Set([...(text ?? "").matchAll(pattern)].map(([, word = ""]) => word))];
}

describe("docs/runner.md", () => {
  it("lists every command that the follower takes", () => {
    const [, listen = ""] = follower?.split("k_listen() {") ?? [];
    expect(column("Towards the node, each command").toSorted()).to.deep.equal(
      words(listen, /^ {6}([a-z]+)\)/gm).toSorted(),
    );
  });

  it("lists every line that the follower says itself", () => {
    const said = [
      ...[follower, hello].flatMap((text) => words(text, /\bk_say "?([a-z]+)/g)),
      ...words(follower, /printf '%s ([a-z]+)[ \\]/g),
    ];
    // `k_fatal` prints the line of that name.
    expect(column("The follower says itself").toSorted()).to.deep.equal([...new Set(said)].toSorted());
  });

  it("lists every line of the journal", () => {
    const journal = [
      ...[runner, extras, trial, verdict, apply].flatMap((text) => words(text, /\bk_event "?([a-z]+(?:-[a-z]+)?)/g)),
      ...[extras, functions, step, batch].flatMap((text) => words(text, /printf '%s ([a-z]+) /g)),
      ...words(batch, /\$k_nonce ([a-z]+) \$k_key/g),
      // k_read reads facts, and gets the type as an argument.
      ...words(step, /\bk_inspect ([a-z]+)/g),
      "fact",
    ];
    expect(column("All other lines are the journal's").toSorted()).to.deep.equal([...new Set(journal)].toSorted());
  });

  it("names every line of a look", () => {
    const [, section = ""] = page.split("A look answers with lines of its own:");
    for (const word of words(look, /\bk_say "?([a-z]+)/g)) expect(section).to.contain(`\`${word}`);
  });

  it("has the headings that comments name", () => {
    const places = ["src/engine/program/step.sh", "src/engine/step/define.ts", "src/cli/watch/interrupts.ts"];
    const named = places.flatMap((path) => words(read(path), /docs\/runner\.md, ([A-Z][a-z ]+)/g));
    expect(named.length).to.equal(3);
    for (const heading of named) expect(page).to.contain(`\n## ${heading.trim()}\n`);
  });
});
