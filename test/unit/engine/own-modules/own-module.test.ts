import { readFileSync } from "node:fs";
import { expect } from "chai";
import { shellSources } from "#engine/expressions/shell-values.ts";
import { parseShell } from "#engine/orchestrate/parse-shell.ts";
import { readOwnModule } from "#engine/own-modules/own-module.ts";
import { secret } from "#engine/step/secret.ts";
import { plainOf } from "#engine/yaml/node.ts";
import { parseSource } from "#engine/yaml/parse.ts";
import { problemsIn } from "#support/problems.ts";
import { runStepOn, shells, stepOf } from "#support/steps.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

const greeting = `
summary: Keeps a greeting in a file.
args:
  required: [path, text]
  properties:
    path: { type: string, description: The file. }
    text: { type: string, format: secret, description: What it says. }
    mode: { type: string, enum: ["0600", "0644"], default: "0644", description: Its mode. }
    also: { type: array, items: { type: string }, description: More lines. }
example: { path: /etc/greeting, text: hello }
files:
  text: "{{args.text}}"
want:
  mode: "{{args.mode}}"
  lines: "{{length (default args.also '')}}"
  text: as wanted
probe: |
  [ -f {{args.path}} ] || { fact mode absent; exit 0; }
  fact mode "0$(stat -c %a {{args.path}})"
  # what the file's first line is; it's as it is
  read -r first <{{args.path}}
  if [ "$first" = "$(cat {{files.text}})" ]; then fact text "as wanted"; else fact text different; fi
  {{#if args.also}}
  count=$(($(wc -l <{{args.path}}) - 1))
  fact lines $count
  {{else}}
  fact lines 0
  {{/if}}
guard: |
  case {{args.path}} in */forbidden) refuse MODULE_REFUSED "not there" ;; esac
apply: |
  { cat {{files.text}}; echo; {{#if args.also}}printf '%s\\n' {{args.also}};{{/if}} } >{{args.path}} &&
    chmod {{args.mode}} {{args.path}}
changes: [{ path: "{{args.path}}" }]
tools: { stat: coreutils }
`;

const read = (text: string) => readOwnModule("site.greeting", parseSource("modules/site.greeting.yaml", text));
const problemsOf = (text: string): string[] => problemsIn(() => read(text));

describe("a project's own module", () => {
  const withArgs = (args: string, example = "") =>
    `summary: x\nargs: ${args}\n${example}want: { a: b }\nprobe: fact a b\n`;
  const chain = (inner: (next: string) => string) => {
    const names = Array.from({ length: 40 }, (_, at) => `d${at}: ${inner(`{ $ref: "#/$defs/d${at + 1}" }`)}`);
    return `{ properties: { x: { description: x, $ref: "#/$defs/d0" } }, $defs: { ${names.join(", ")}, d40: { type: string } } }`;
  };

  it("is refused if its references expand to more than 2000 schemas; recursive ones are accepted", () => {
    for (const inner of [
      (next: string) => `{ allOf: [${next}, ${next}] }`,
      (next: string) => `{ anyOf: [${next}, ${next}] }`,
      (next: string) => `{ type: object, properties: { a: ${next}, b: ${next} } }`,
      (next: string) => `{ type: array, prefixItems: [${next}, ${next}] }`,
    ])
      expect(problemsOf(withArgs(chain(inner)))[0], inner("…")).to.include("it is more than 2000 schemas");
    expect(read(withArgs(chain((next) => `{ allOf: [${next}] }`))).module.name).to.equal("site.greeting");
    const tree = `{ $ref: "#/$defs/tree" }`;
    const recursive = `{ properties: { x: { description: x, $ref: "#/$defs/tree" } }, $defs: { tree: { type: object, properties: { l: ${tree}, r: ${tree} } } } }`;
    expect(read(withArgs(recursive, "example: { x: { l: { r: {} } } }\n")).example).to.deep.equal({
      x: { l: { r: {} } },
    });
  });

  it("ends endless checks of arguments, in its example and in a step", () => {
    const endless = [
      ['{ type: string, pattern: "^(a+)+$"', `"${"a".repeat(60)}!"`],
      ['{ type: array, items: { type: string, pattern: "^(a|a)*$" }', `["${"a".repeat(60)}!"]`],
      ['{ type: object, patternProperties: { "^(a+)+$": { type: string } }', `{ ${"a".repeat(60)}!: x }`],
      ['{ $ref: "#/$defs/self"', "{ a: b }"],
      ['{ allOf: [{ $ref: "#/$defs/self" }, { $ref: "#/$defs/self" }]', "{ a: b }"],
    ];
    for (const [schema, value] of endless) {
      const args = `{ properties: { x: ${schema}, description: x } }, $defs: { self: { $ref: "#/$defs/self" } } }`;
      expect(problemsOf(withArgs(args, `example: { x: ${value} }\n`))[0], schema).to.include("takes too long to check");
      const { module } = read(withArgs(args));
      expect(module.args.safeParse({ x: plainOf(parseSource("x", value as string)) }).success).to.equal(false);
    }
  });

  it("makes want, apply, effects and tools from its texts and a step's arguments", () => {
    const { module, example } = read(greeting);
    expect([module.name, module.summary]).to.deep.equal(["site.greeting", "Keeps a greeting in a file."]);
    expect(example).to.deep.equal({ path: "/etc/greeting", text: "hello", mode: "0644" });
    const step = stepOf(module, { path: "/etc/it's", text: "x", also: ["a b", "$(c)"] });
    expect(step.want).to.deep.equal({ mode: "0644", lines: "2", text: "as wanted" });
    expect(step.apply?.masked)
      .to.contain(`printf '%s\\n' 'a b' '$(c)';`)
      .and.contain(String.raw`>'/etc/it'\''s'`);
    expect(step.effects).to.deep.equal({ writes: [{ is: "path", path: "/etc/it's" }], reads: [] });
    expect(step.tools).to.deep.equal([{ command: "stat", package: "coreutils" }]);
  });

  it("sends a secret as a sensitive blob, never in its texts", () => {
    const step = stepOf(read(greeting).module, { path: "/a", text: secret("open sesame") });
    expect(JSON.stringify(step)).not.to.contain("sesame");
    expect(step.apply?.blobs.map(({ sensitive }) => sensitive)).to.deep.equal([true]);
  });

  for (const shell of shells)
    describe(`on ${shell}`, () => {
      const at = folderOfEachTest("own-module");

      it("converges, and corrects drift, with arguments that need quoting", async () => {
        const path = `${at()}/it's $(here)`;
        const step = stepOf(read(greeting).module, { path, text: "$(touch /nowhere)'\"", also: ["* ", "-n"] });
        expect((await runStepOn(shell, step, { dryRun: true })).outcome).to.equal("would-change");
        expect((await runStepOn(shell, step)).outcome).to.equal("changed");
        expect(readFileSync(path, "utf8")).to.equal("$(touch /nowhere)'\"\n* \n-n\n");
        expect((await runStepOn(shell, step)).outcome).to.equal("ok");
        const drifted = await runStepOn(shell, stepOf(read(greeting).module, { path, text: "other" }));
        expect([drifted.outcome, drifted.have["text"]]).to.deep.equal(["changed", "different"]);
      });

      it("refuses with the code and message of its guard", async () => {
        const step = stepOf(read(greeting).module, { path: at("forbidden"), text: "x" });
        expect((await runStepOn(shell, step)).problem).to.deep.include({
          code: "MODULE_REFUSED",
          message: "not there",
        });
      });
    });

  it("lists an argument with format shell as shell code, so that values in it are checked", () => {
    const own = read(
      "summary: x\nargs: { required: [cmd], properties: { cmd: { type: string, format: shell, description: Code. } } }\nwant: { a: b }\nprobe: sh -c {{args.cmd}}\n",
    );
    const args = parseSource("s.yaml", "cmd: echo {{params.x}}");
    const found = shellSources(own.module.args, args, {});
    expect(found.map(({ scalar }) => scalar.value)).to.deep.equal(["echo {{params.x}}"]);
    expect(stepOf(own.module, { cmd: "echo a" }).probe.masked).to.equal("sh -c 'echo a'");
  });

  it("has all its texts parsed by a shell, also those of apply", async () => {
    expect(await parseShell(read(greeting).shell)).to.deep.equal([]);
    const problems = await parseShell(read(greeting.replace("apply: |\n", "apply: |\n  if true; then\n")).shell);
    expect(problems.map(({ code, at }) => `${at?.line} ${code}`)).to.deep.equal(["31 SHELL_SYNTAX"]);
  });

  for (const [what, text, problems] of [
    ...["dash -cx", "bash -c -e --", "runuser u -c", "sh -ec"].map(
      (shell) =>
        [
          `a value that is code for ${shell}`,
          greeting.replace("[ -f {{args.path}} ]", `${shell} {{args.path}}`),
          [
            `:18:${4 + shell.length}+13 another shell would read this value as code [MODULE_INVALID] | give it as a word: sh -c 'echo "$1"' sh {{args.x}}; an argument that is code has format: shell`,
          ],
        ] as const,
    ),
    [
      "an expression in a comment",
      greeting.replace("it's as it is", "it's {{args.path}}"),
      [
        ":20:41+13 this expression stands in a comment, where its own quotes mean nothing [MODULE_INVALID] | leave it out: a text of two lines would end the comment",
      ],
    ],
    [
      "no probe and no want",
      "summary: x\n",
      [
        ":1:1+10 the module wants nothing [MODULE_INVALID] | want: { NAME: the value that the probe shall find }",
        ':1:1+10 the module has no probe [MODULE_INVALID] | probe: fact NAME "what there is"',
      ],
    ],
    [
      "an argument without a description",
      greeting.replace(", description: More lines.", ""),
      [":9:11+40 “also” has no description [MODULE_INVALID] | see docs/own-modules.md"],
    ],
    [
      "an invalid schema",
      greeting.replace("{ type: array,", "{ type: lots,"),
      [":9:11+65 “also” is no JSON Schema: Unsupported type: lots [MODULE_INVALID] | see docs/own-modules.md"],
    ],
    [
      "an argument without a type",
      greeting.replace("{ type: array, items", "{ items"),
      [":9:11+53 “also” has no type, and without one nothing is checked [MODULE_INVALID] | see docs/own-modules.md"],
    ],
    [
      "rules over several arguments",
      greeting.replace("required: [path, text]", "required: [path, text]\n  dependentRequired: { mode: [path] }"),
      [
        ":5:3+17 no key “dependentRequired” is known in args [YAML_KEY_UNKNOWN] | known here: type, properties, required, $defs, additionalProperties, description",
      ],
    ],
    [
      "a list of files",
      greeting.replace('files:\n  text: "{{args.text}}"', 'files: ["{{args.text}}"]'),
      [":11:8+17 files is a map of texts [MODULE_INVALID] | files: { NAME: text }"],
    ],
    [
      "an example that contradicts the arguments",
      greeting.replace("text: hello", "txt: hello"),
      [
        ":10:10+35 “text” is missing [YAML_KEY_MISSING]",
        ":10:33+3 no key “txt” is known here [YAML_KEY_UNKNOWN] | did you mean “text”?",
      ],
    ],
  ] as const)
    it(`is refused with ${what}`, () =>
      expect(problemsOf(text)).to.deep.equal(problems.map((problem) => `modules/site.greeting.yaml${problem}`)));

  it("is refused with a block that leaves quotes open", () => {
    const text = greeting.replace(
      "  { cat {{files.text}}",
      "  {{#if args.also}}: 'a{{else}}: 'b{{/if}}'\n  { cat {{files.text}}",
    );
    expect(problemsOf(text)[0]).to.match(
      /:32:3\+\d+ this block opens quotes, or a here-document, that it does not close/,
    );
  });

  it("is refused with an expression behind a here-document that ends in one branch only", () => {
    const lines = "cat <<END\n  {{#if args.also}}END{{/if}}\n  {{args.path}}\n  END";
    expect(problemsOf(greeting.replace("apply: |\n", `apply: |\n  ${lines}\n`))[0]).to.contain("[MODULE_INVALID]");
  });

  it("accepts a block within a here-document", () => {
    const text = greeting.replace("apply: |\n", "apply: |\n  cat <<END\n  so {{#if args.also}}more{{/if}}\n  END\n");
    expect(() => read(text)).not.to.throw();
  });

  it("refuses a secret as a fact, at its place", () => {
    const text = greeting.replace("text: as wanted", 'text: "{{args.text}}"');
    expect(problemsIn(() => stepOf(read(text).module, { path: "/a", text: secret("s") }))).to.deep.equal([
      "modules/site.greeting.yaml:16:9+15 the fact “text” is a secret, and facts are shown [MODULE_INVALID] | see docs/own-modules.md",
    ]);
  });
});
