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
  const long = "word ".repeat(24);
  const hidden: Readonly<Record<string, readonly [string, string, string]>> = {
    "a doc comment that begins with “what”": ["a.ts", "/** What a node runs. */\n", "1:5 What"],
    "“what” inside a comment": ["a.ts", "f(); // Tells what the node runs.\n", "1:15 what"],
    "“whoever” in the second line of a block comment": [
      "a.ts",
      "/**\n * A lease.\n * Whoever holds it, writes.\n */\n",
      "3:4 Whoever",
    ],
    "“nobody” as an actor": ["a.ts", "// The lock is free: nobody holds it.\n", "1:22 nobody"],
    "a pronoun before its noun": ["a.ts", "/** It died before the step ended. */\n", "1:5 It"],
    "“somebody” in a comment of sh": ["a.sh", "# The file of somebody else.\n", "1:15 somebody"],
    "“what” as the subject in a paragraph of a page": [
      "README.md",
      "# Title\n\nThe node waits. What it has read is kept.\n",
      "3:17 What",
    ],
    "“whoever” in an item of a list": ["README.md", "- one\n- Whoever asks gets an answer.\n", "2:3 Whoever"],
    "“that one” in a cell of a table": [
      "README.md",
      "| a | b |\n| --- | --- |\n| x | for that one alone |\n",
      "3:11 that one",
    ],
    "a sentence of 26 words": ["a.ts", `/** One. ${long}end end: one. */\n`, "1:10 sentence of 26 words"],
    "a sentence of 26 words on a page": ["README.md", `- **One.** ${long}\n  end end.\n`, "1:12 sentence of 26 words"],
    "a sentence of 26 words in a cell": ["README.md", `| a | ${long}end end | b |\n`, "1:7 sentence of 26 words"],
    "a sentence of 26 words in a text": ["src/a.ts", `f("One. ${long}end end.");\n`, "1:9 sentence of 26 words"],
    "a sentence of 26 words in the help": [
      "src/a.ts",
      `f(\`\n  kcore a b c   one\n  kcore d\n\n${long}\nend \${x({})}.\`);\n`,
      "5:1 sentence of 26 words",
    ],
  };
  for (const [name, [file, text, expected]] of Object.entries(hidden))
    it(`finds ${name}`, () => expect(found(file, text)).to.deep.equal([expected]));

  const plain: Readonly<Record<string, readonly [string, string]>> = {
    "a named subject": ["a.ts", "/** The version that the node runs. */\n"],
    "sentences of 25 words": ["a.ts", `/** ${long}end. ${long}end; ${long}end */\n`],
    "sentences of 25 words on a page": ["README.md", `| ${long}end | ${long}end |\n\n${long}(end.) ${long}end\n`],
    "items of a list": ["README.md", `- ${long}end\n- ${long}end\n1. ${long}end\n`],
    "code spans as a word": ["README.md", `${long}${"`a b`, ".repeat(9)}\`c\`.\n`],
    "sentences of 25 words in a text": ["src/a.ts", `f(html\`<p>${long}end</p> <b>${long}end</b>\`);\n`],
    "a script in a text": ["src/a.ts", `f(rawSh("${long.repeat(2)}"), sh\`${long.repeat(2)}\`);\n`],
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
