import { expect } from "chai";
import { proseOf } from "../../scripts/words/prose.ts";
import { faultsOf } from "../../scripts/words/rules.ts";

/** The faults of a text, each with line, column and word. */
function found(file: string, text: string): readonly string[] {
  return proseOf(file, text).flatMap((prose) =>
    faultsOf(prose).map(({ at, message }) => {
      const before = text.slice(0, prose.offsets[at]);
      return `${before.split("\n").length}:${before.length - before.lastIndexOf("\n")} ${message
        .split(/[:”]/, 1)
        .join()
        .replace(/^(?:“|a )/, "")}`;
    }),
  );
}

describe("the check of words", () => {
  const hidden: Readonly<Record<string, readonly [string, string, string]>> = {
    "a doc comment that begins with “what”": ["a.ts", "/** What a node runs. */\n", "1:5 What"],
    "“what” inside a comment": ["a.ts", "f(); // Tells what the node runs.\n", "1:15 what"],
    "a second line of a block": ["a.ts", "/**\n * A lease.\n * Whoever holds it, writes.\n */\n", "3:4 Whoever"],
    "an actor without a name": ["a.ts", "// The lock is free: nobody holds it.\n", "1:22 nobody"],
    "a pronoun before its noun": ["a.ts", "/** It died before the step ended. */\n", "1:5 It"],
    "a comment of sh": ["a.sh", "# The file of somebody else.\n", "1:15 somebody"],
    "a paragraph of a page": ["README.md", "# Title\n\nThe node waits. What it has read is kept.\n", "3:17 What"],
    "an item of a list": ["README.md", "- one\n- Whoever asks gets an answer.\n", "2:3 Whoever"],
    "a cell of a table": ["README.md", "| a | b |\n| --- | --- |\n| x | for that one alone |\n", "3:11 that one"],
    "a sentence of 26 words": ["a.ts", `/** One. ${"word ".repeat(26)}end: one. */\n`, "1:10 sentence of 27 words"],
  };
  for (const [name, [file, text, expected]] of Object.entries(hidden))
    it(`finds ${name}`, () => expect(found(file, text)).to.deep.equal([expected]));

  const long = "word ".repeat(24);
  const plain: Readonly<Record<string, readonly [string, string]>> = {
    "a named subject": ["a.ts", "/** The version that the node runs. */\n"],
    "sentences of 25 words": ["a.ts", `/** ${long}end. ${long}end; ${long}end */\n`],
    "a question": ["a.ts", "// What does the node run?\n"],
    "a text of the program": ["a.ts", 'const url = "http://nobody"; const text = `// whoever`;\n'],
    "code and quotations": ["a.ts", "/** The user `nobody`, and the message “what is it”. */\n"],
    "a heading of a page": ["README.md", "## What a run survives\n"],
    "code of a page": ["README.md", "Run it:\n\n```console\n$ whoever\n```\n"],
    "“what” as an object on a page": ["README.md", "The plan shows what would change.\n"],
  };
  for (const [name, [file, text]] of Object.entries(plain))
    it(`passes ${name}`, () => expect(found(file, text)).to.deep.equal([]));
});
