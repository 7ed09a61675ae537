import { expect } from "chai";
import { join } from "node:path";
import { readFileSync } from "node:fs";
import { Secret } from "#engine/step/secret.ts";
import { templateOfFile } from "#engine/expressions/expression.ts";
import type { SourceFile } from "#engine/yaml/file.ts";
import { helpers } from "#engine/expressions/helpers.ts";
import { openTemplates, type Templates } from "#engine/expressions/template.ts";
import { Unknown, UnknownValue } from "#engine/expressions/unknown.ts";
import { inProject } from "#support/in-project.ts";
import { problemsIn } from "#support/problems.ts";

type Files = Readonly<Record<string, string>>;

function using<T>(files: Files, work: (templates: Templates) => T): T {
  const named = Object.fromEntries(Object.entries(files).map(([name, text]) => [`templates/${name}`, text]));
  return inProject(named, (project) =>
    work(
      openTemplates([
        { path: join(project, "templates"), shown: "templates", origin: "project" },
        { path: join(project, "templates/shipped"), shown: "templates", origin: "shipped" },
      ]),
    ),
  );
}

const scope = {
  params: { listen: "0.0.0.0:9090", token: new Secret("s3cret") },
  nodes: new Map([["n1", { name: "n1", address: "::1" }]]),
  facts: new Unknown("facts", { facts: true }),
  steps: { key: new Unknown("key", { steps: ["key"] }) },
};

/** The text of a.hbs among these files, or of another. */
const render = (files: Files, name = "a.hbs"): string | Secret =>
  using(files, (templates) => templates.render(name, scope));
const problems = (files: Files, name?: string): string[] => problemsIn(() => render(files, name));

describe("a template", () => {
  it("renders no line for a block tag that stands alone on its line", () => {
    const text = "listen: {{params.listen}}\npeers:\n{{#each nodes}}\n  - {{hostPort address 9090}}\n{{/each}}\n";
    expect(render({ "a.hbs": `${text}end: "<&>"\n` })).to.equal(
      'listen: 0.0.0.0:9090\npeers:\n  - [::1]:9090\nend: "<&>"\n',
    );
  });

  it("is looked up in the project first, then among the shipped ones", () => {
    const files = { "a.hbs": "project", "shipped/a.hbs": "shipped", "shipped/b.hbs": "shipped" };
    expect([render(files), render(files, "b.hbs")]).to.deep.equal(["project", "shipped"]);
  });

  it("includes another template, with its arguments and the indentation of the call", () => {
    const part = "port: {{port}}\nlisten: {{params.listen}}\n";
    expect(render({ "a.hbs": "x:\n  {{> parts/b.hbs port=9090}}\ny\n", "parts/b.hbs": part })).to.equal(
      "x:\n  port: 9090\n  listen: 0.0.0.0:9090\ny\n",
    );
  });

  it("is a secret when it or an included template contains one (S-7)", () => {
    const text = render({ "a.hbs": "{{> b.hbs}}", "b.hbs": "token {{params.token}}" });
    expect(text).to.be.instanceOf(Secret);
    expect((text as Secret).reveal()).to.equal("token s3cret");
  });

  it("reports errors at their place in the template file (S-19)", () => {
    const files = {
      "a.hbs": "one\n  {{params.nope}}\n",
      "b.hbs": "{{> c.hbs}}",
      "c.hbs": "x\n{{#if nope}}{{/if}}",
      "d.hbs": "a\nb {{#if}}\n",
      "e.hbs": "{{> e.hbs}}",
    };
    for (const [name, message] of [
      ["a.hbs", /a\.hbs:2:5\+11 “params” has no “nope” \[EXPRESSION_UNDEFINED\] \| there is listen, token$/],
      ["b.hbs", /c\.hbs:2:7\+4 “nope” is not defined/],
      ["d.hbs", /d\.hbs:3:\d+\+1 the expression cannot be read: unexpected end of the text/],
      ["e.hbs", /e\.hbs:1:1\+\d+ “e\.hbs” includes itself.*\[TEMPLATE_RECURSION\]/],
    ] as const)
      expect(problems(files, name)[0]).to.match(new RegExp(`^templates/${message.source}`));
  });

  it("reports all errors at once, in blocks and included templates too, before it waits for an unknown value", () => {
    const lines = ["{{params.listne}}", "{{upper params.listen}}", "{{#each nodes}}{{adress}}{{/each}}", "{{> b.hbs}}"];
    const reported = problems({
      "a.hbs": [...lines, "{{facts.os.id}}", "{{nope 1}}\n"].join("\n"),
      "b.hbs": "{{nodes.n2.name}} {{#if params.x}}{{/if}}",
    });
    expect(reported.map((line) => line.split("+")[0]?.replace("templates/", "")).join(" ")).to.equal(
      "a.hbs:1:3 a.hbs:3:18 a.hbs:6:1 b.hbs:1:3 b.hbs:1:25",
    );
  });

  it("that includes itself twice is refused once (S-19)", () =>
    expect(problems({ "a.hbs": "{{> a.hbs}}{{> a.hbs}}" })).to.have.length(1));

  it("is never read from outside its folder (S-20)", () =>
    using({ "ab.hbs": "" }, (templates) => {
      const at = { file: "states/x.yaml", line: 4, column: 9 };
      expect(problemsIn(() => templates.render("abc.hbs", scope, at))).to.deep.equal([
        "states/x.yaml:4:9+1 no template “abc.hbs” [TEMPLATE_NOT_FOUND] | did you mean “ab.hbs”?",
      ]);
      for (const name of ["../roster/a.yaml", "/etc/passwd", "a/../../x", "", "a\0b"])
        expect(problemsIn(() => templates.render(name, scope))[0]).to.include("[TEMPLATE_NOT_FOUND]");
    }));

  it("waits for unknown values, and lists the facts and steps that it refers to", () =>
    using(
      { "a.hbs": "{{#each nodes}}{{> b.hbs}}{{/each}}", "b.hbs": "{{facts.os}} {{steps.key.stdout}}" },
      (templates) => {
        expect(() => templates.render("a.hbs", scope)).to.throw(UnknownValue);
        const { facts, steps } = templates.references("a.hbs");
        expect([facts, [...steps]]).to.deep.equal([true, ["key"]]);
      },
    ));

  it("must be a text, never a syntax tree (S-19)", () => {
    const tree = { type: "Program", body: [] } as unknown as string;
    expect(() => templateOfFile({ text: tree, name: "x" } as unknown as SourceFile)).to.throw(TypeError);
  });
});

describe("docs/templates.md", () => {
  it("describes exactly the helpers that exist", () => {
    const text = readFileSync(new URL("../../../../docs/templates.md", import.meta.url), "utf8");
    const rows = [...(text.split("## Helpers")[1] ?? "").matchAll(/^\| `(\w+)/gm)].map(([, name]) => name ?? "");
    expect([...new Set(rows)].sort()).to.deep.equal([...helpers.keys()].sort());
  });
});
