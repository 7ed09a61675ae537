import { expect } from "chai";
import { nodeAt, plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { cpuClock } from "#support/cpu.ts";
import { problemsIn } from "#support/problems.ts";

const parse = (text: string | Uint8Array): unknown => JSON.parse(JSON.stringify(plainOf(parseSource("f.yaml", text))));
const refuse = (text: string | Uint8Array): string[] => problemsIn(() => parseSource("f.yaml", text));

describe("parseSource", () => {
  it("reads YAML 1.2: yes and no are texts", () => {
    expect(parse("a: yes\nb: off\nc: true\nd: 5\ne: ~\nf: 1.5\n")).to.deep.equal({
      a: "yes",
      b: "off",
      c: true,
      d: 5,
      e: null,
      f: 1.5,
    });
  });

  it("knows the place of each value and key", () => {
    const tree = parseSource("f.yaml", "a:\n  - x\n  - bcd: 12 # note\n");
    expect(nodeAt(tree, ["a", 1, "bcd"])?.at).to.deep.equal({ file: "f.yaml", line: 3, column: 10, length: 2 });
    const map = nodeAt(tree, ["a", 1]);
    expect(map?.kind === "map" && map.entries.get("bcd")?.keyAt).to.deep.equal({
      file: "f.yaml",
      line: 3,
      column: 5,
      length: 3,
    });
  });

  it("takes an empty file for nothing", () => {
    expect(parse("")).to.equal(null);
    expect(parse("# only a comment\n")).to.equal(null);
  });

  it("keeps numbers and booleans as keys by their text", () => {
    expect(parse("9090: a\ntrue: b\n")).to.deep.equal({ 9090: "a", true: "b" });
  });

  it("reads a byte order mark and CRLF", () => {
    expect(parse(Buffer.from("\uFEFFa: 1\r\nb: 2\r\n"))).to.deep.equal({ a: 1, b: 2 });
  });

  const refused: readonly (readonly [string, string, readonly string[]])[] = [
    [
      "a number with a leading zero",
      "mode: 0644\n",
      ['f.yaml:1:7+4 0644 has a leading zero, and YAML would read 644 [YAML_LEADING_ZERO] | quote it: "0644"'],
    ],
    [
      "O14: an indentation that only looks like blanks",
      "steps:\n  - id: a\n \u00a0  run: b\n",
      [
        "f.yaml:3:2+1 the line is indented by U+00A0, which only looks like a blank [YAML_SYNTAX] | write blanks in its place; copied text often brings such signs along",
      ],
    ],
    [
      "an unquoted expression",
      "a: 1\napp: {{params.x}}\n",
      ['f.yaml:2:6+12 {{params.x}} is not in quotes, so YAML reads it as a map [YAML_UNQUOTED] | write "{{params.x}}"'],
    ],
    [
      "an unquoted expression with a helper",
      "when: {{has node.roles 'x'}}\n",
      [
        `f.yaml:1:7+22 {{has node.roles 'x'}} is not in quotes, so YAML reads it as a map [YAML_UNQUOTED] | write "{{has node.roles 'x'}}"`,
      ],
    ],
    [
      "an unquoted expression with text after it",
      "a: {{x}}/y\n",
      ['f.yaml:1:4+7 {{x}}/y is not in quotes, so YAML reads it as a map [YAML_UNQUOTED] | write "{{x}}/y"'],
    ],
    [
      "a %YAML 1.1 directive",
      "%YAML 1.1\n---\na: yes\n",
      [
        "f.yaml:1:1+9 only YAML 1.2 is read here, where yes, no, on and off are plain words [YAML_UNSUPPORTED] | remove the %YAML line",
      ],
    ],
    [
      "a tag",
      "a: !vault x\n",
      [
        "f.yaml:1:4+6 tags such as !vault are not read here [YAML_UNSUPPORTED] | remove the tag; quote the value if it is a text",
      ],
    ],
    ["a binary", "a: !!binary aGk=\n", ["f.yaml:1:13+4 aGk= is not a plain value [YAML_UNSUPPORTED] | remove its tag"]],
    [
      "a second document",
      "a: 1\n---\nb: 1\n",
      [
        "f.yaml:2:1+3 a file holds one document; a second one begins here [YAML_UNSUPPORTED] | remove the line “---”, or move what follows into a file of its own",
      ],
    ],
    [
      "a duplicate key",
      "a: 1\nb: 2\na: 3\n",
      ["f.yaml:3:1+1 “a” stands here twice, first in line 1 [YAML_KEY_DUPLICATE] | remove one of them"],
    ],
    [
      "a merge key",
      "<<: { a: 1 }\n",
      [
        "f.yaml:1:1+2 merge keys (<<) are not YAML 1.2 [YAML_UNSUPPORTED] | say what is shared with defaults, groups or parameters",
      ],
    ],
    ["a list as key", "? [a]\n: 1\n", ["f.yaml:1:3+3 a key must be a text [YAML_UNSUPPORTED] | quote it"]],
    [
      "a prototype key (S-18)",
      "a: { __proto__: 1 }\nconstructor: 2\n",
      [
        "f.yaml:1:6+9 “__proto__” cannot be a key [YAML_UNSUPPORTED] | choose another name",
        "f.yaml:2:1+11 “constructor” cannot be a key [YAML_UNSUPPORTED] | choose another name",
      ],
    ],
    [
      "infinity and a number too large",
      "a: .inf\nb: 12345678901234567890\n",
      [
        'f.yaml:1:4+4 .inf is not a number that can be used here [YAML_UNSUPPORTED] | write ".inf" if it is a text',
        'f.yaml:2:4+20 12345678901234567890 is too large to be kept exactly [YAML_UNSUPPORTED] | write "12345678901234567890" if it is a text',
      ],
    ],
    [
      "an alias without an anchor",
      "a: *b\n",
      [
        "f.yaml:1:4+2 the alias *b names no anchor above it [YAML_SYNTAX] | write &b before what it stands for; quote a text that begins with *",
      ],
    ],
    [
      "bad indentation, told once for a line",
      "a: 1\n b: 2\n",
      [
        "f.yaml:2:2+1 “b” stands deeper than “a” above it, which has its value already [YAML_SYNTAX] | begin “b: 2” at column 1, as “a” does",
      ],
    ],
    [
      "an indentation that is that of nothing above",
      'a:\n  b:\n    c: "1"\n   d: 2\n',
      [
        "f.yaml:4:4+1 “d” begins at column 4, where nothing above it begins [YAML_SYNTAX] | begin “d: 2” at column 5, as “c” does, or at column 3, as “b” does",
      ],
    ],
    [
      "an item that is not below its neighbour",
      "a:\n  - b\n - c\n",
      [
        "f.yaml:3:2+1 “-” begins at column 2, where nothing above it begins [YAML_SYNTAX] | begin “- c” at column 3, as “-” does, or at column 1, as “a” does",
      ],
    ],
    [
      "a tab as indentation",
      "a:\n\tb: 1\n",
      ["f.yaml:2:1+1 a tab indents the line; YAML knows blanks only [YAML_SYNTAX] | write two blanks: “  b: 1”"],
    ],
    [
      "a second key on a line",
      "a: b: c\n",
      ['f.yaml:1:4+4 a second “: ” stands in the line [YAML_SYNTAX] | quote the text: "b: c"'],
    ],
    ...(
      [
        ["plain", "a: { b: x c: 2 }\n", "1:11+1", "c", "x, c: 2"],
        ["quoted", "a: { b: 'x' c: 2 }\n", "1:13+1", "c", "'x', c: 2"],
        ["bracketed", "a: { b: [x] c: 2 }\n", "1:13+1", "c", "[x], c: 2"],
        ["on another line", 'a: { b: "{",\n  cc: x # {\n  dd: 2 }\n', "3:3+2", "dd", "x, dd: 2"],
        ["in a list", 'a: ["x" "y"]\n', "1:9+3", "y", '"x", "y"'],
      ] as const
    ).map(([what, text, at, key, right]): [string, string, string[]] => [
      `a missing comma, ${what}`,
      text,
      [`f.yaml:${at} a comma is missing before “${key}” [YAML_SYNTAX] | write: ${right}`],
    ]),
    [
      "a bracket that nobody closed",
      "a:\n  b: { c: 1\n  d: { e: 2 }\n",
      ["f.yaml:2:6+1 the “{” is not closed [YAML_SYNTAX] | end it with “}”: b: { c: 1 }"],
    ],
    [
      "a NUL",
      "a: 1\nb: x\0y\n",
      [
        "f.yaml:2:5+1 f.yaml holds a NUL byte [YAML_ENCODING] | save it as UTF-8 text; keep binary content in a file of its own and name it with source:",
      ],
    ],
  ];
  for (const [what, text, problems] of refused)
    it(`refuses ${what}`, () => {
      expect(refuse(text)).to.deep.equal(problems);
    });

  it("refuses what is not UTF-8 (S-18)", () => {
    const [problem] = refuse(Buffer.concat([Buffer.from("a: 1\nb: caf"), Buffer.from([0xe9])]));
    expect(problem).to.match(/^f\.yaml:2:7\+1 f\.yaml is not UTF-8 text \[YAML_ENCODING\]/);
  });
});

describe("the bomb corpus (S-18)", () => {
  const nine = (name: string, of: string): string => `${name}: &${name} [${Array(9).fill(of).join(", ")}]\n`;
  const laughs = `a: &a [x]\n${Array.from("bcdefghi")
    .map((name, index) => nine(name, `*${"abcdefgh"[index]}`))
    .join("")}`;
  const bombs: Readonly<Record<string, [string, string]>> = {
    "a billion laughs": [laughs, "YAML_UNSUPPORTED"],
    "many aliases of one anchor": [`a: &a [x]\nb: [${Array(60).fill("*a").join(", ")}]\n`, "YAML_UNSUPPORTED"],
    "20,000 open brackets": ["[".repeat(20_000), "YAML_TOO_DEEP"],
    "20,000 open braces": ["{a: ".repeat(20_000), "YAML_TOO_DEEP"],
    "20,000 nested lists": ["- ".repeat(20_000), "YAML_TOO_DEEP"],
    "2,000 nested maps": [
      Array.from({ length: 1000 }, (_, level) => `${" ".repeat(level)}a:\n`).join(""),
      "YAML_TOO_DEEP",
    ],
    "more than 1 MiB": ["#".repeat(1_048_577), "FILE_TOO_LARGE"],
  };
  for (const [name, [text, code]] of Object.entries(bombs))
    it(`refuses ${name} with little work (S-18)`, () => {
      const used = cpuClock();
      expect(refuse(text)[0]).to.include(`[${code}]`);
      expect(used(), "ms of processor").to.be.below(500);
    });

  it("allows 64 levels and 50 aliases", () => {
    expect(() => parse("[".repeat(60) + "]".repeat(60))).not.to.throw();
    expect(() => parse(`a: &a [x]\nb: [${Array(50).fill("*a").join(", ")}]\n`)).not.to.throw();
  });
});
