import { expect } from "chai";
import { z } from "zod";
import { parseSource } from "#engine/yaml/parse.ts";
import { validate } from "#engine/yaml/validate.ts";
import { problemsIn } from "#support/problems.ts";

const Schema = z.strictObject({
  name: z.string().min(1),
  mode: z.string().optional(),
  nodes: z
    .record(
      z.string(),
      z.strictObject({
        port: z.int().min(1).max(65_535).optional(),
        use: z.enum(["volumes", "os"]).optional(),
        size: z.union([z.number(), z.string().regex(/^\d/, "must be a size such as 5G")]).optional(),
        sudo: z.union([z.literal(true), z.strictObject({ password: z.string() })]).optional(),
        tags: z.array(z.string()).min(1).optional(),
      }),
    )
    .default({}),
});

describe("validate", () => {
  const problems = (text: string): string[] => problemsIn(() => validate(parseSource("f.yaml", text), Schema));

  it("returns the schema's output", () =>
    expect(validate(parseSource("f.yaml", "name: x\n"), Schema)).to.deep.equal({ name: "x", nodes: {} }));

  it("reports an exclusive limit", () => {
    const open = z.strictObject({ a: z.number().gt(0).lt(9), b: z.number().gt(0).lt(9) });
    expect(problemsIn(() => validate(parseSource("f.yaml", "a: 0\nb: 9\n"), open))).to.deep.equal([
      "f.yaml:1:4+1 “a” must be more than 0 [YAML_TYPE]",
      "f.yaml:2:4+1 “b” must be less than 9 [YAML_TYPE]",
    ]);
  });

  it("reports all problems at their places, unknown keys at the key", () =>
    expect(
      problems("nmae: x\nmode: 5\nnodes:\n  a: { port: 0, usse: os }\n  b: { port: x, use: volume, size: true }\n"),
    ).to.deep.equal([
      "f.yaml:1:1+7 “name” is missing [YAML_KEY_MISSING]",
      "f.yaml:1:1+4 no key “nmae” is known here [YAML_KEY_UNKNOWN] | did you mean “name”?",
      'f.yaml:2:7+1 “mode” must be a text, not 5 [YAML_TYPE] | quote it: "5"',
      "f.yaml:4:14+1 “nodes.a.port” must be at least 1 [YAML_TYPE]",
      "f.yaml:4:17+4 no key “usse” is known in “nodes.a” [YAML_KEY_UNKNOWN] | did you mean “use”?",
      "f.yaml:5:14+1 “nodes.b.port” must be a number, not a text [YAML_TYPE]",
      "f.yaml:5:22+6 “nodes.b.use” must be “volumes” or “os” [YAML_TYPE] | did you mean “volumes”?",
      "f.yaml:5:36+4 “nodes.b.size” must be a number or a text, not true [YAML_TYPE]",
    ]));

  it("reports the problems of a union's intended branch", () =>
    expect(
      problems("name: x\nnodes:\n  c: { sudo: { pass: x } }\n  d: { size: abc, sudo: false, tags: [] }\n"),
    ).to.deep.equal([
      "f.yaml:3:14+11 “password” is missing in “nodes.c.sudo” [YAML_KEY_MISSING]",
      "f.yaml:3:16+4 no key “pass” is known in “nodes.c.sudo” [YAML_KEY_UNKNOWN] | known here: password",
      "f.yaml:4:14+3 “nodes.d.size” must be a size such as 5G [YAML_TYPE]",
      "f.yaml:4:25+5 “nodes.d.sudo” must be true or a map, not false [YAML_TYPE]",
      "f.yaml:4:38+2 “nodes.d.tags” must not be empty [YAML_TYPE]",
    ]));

  it("hints at quotes for an unquoted text with a colon", () =>
    expect(problems("name: x\nnodes:\n  c: { tags: [echo, foo: bar] }\n")).to.deep.equal([
      "f.yaml:3:21+8 “nodes.c.tags[1]” must be a text, not a map [YAML_TYPE] | if it is one text, quote it: 'foo: bar'",
    ]));

  it("reports an invalid key at the key", () => {
    const open = z.strictObject({ labels: z.record(z.string().regex(/^[^=]+$/, "must hold no “=”"), z.string()) });
    expect(problemsIn(() => validate(parseSource("f.yaml", 'labels: { a: b, "c=d": e }\n'), open))).to.deep.equal([
      "f.yaml:1:17+5 “c=d” in “labels” must hold no “=” [YAML_TYPE]",
    ]);
  });

  it("refuses a list in place of a map", () =>
    expect(problems("- a\n")).to.deep.equal(["f.yaml:1:1+3 the value must be a map, not a list [YAML_TYPE]"]));
});
