import { expect } from "chai";
import { execFileSync } from "node:child_process";
import fc from "#support/properties.ts";
import { Secret } from "#engine/step/secret.ts";
import { callHelper } from "#engine/expressions/helpers.ts";

const call = (name: string, ...values: unknown[]): unknown => callHelper(name, values, new Map());

describe("helpers of expressions", () => {
  const list = [1, { a: "x" }];
  const roles = new Map(["c", "w"].map((r) => [r, { r: [r] }]));
  const cases: readonly (readonly [string, readonly unknown[], unknown])[] = [
    ["eq", [list, [1, { a: "x" }]], true],
    ["eq", [1, "1"], false],
    ["eq", [0, -0], true],
    ["ne", ["a", "b"], true],
    ["lt", [1, 2], true],
    ["le", [2, 2], true],
    ["gt", [1, 2], false],
    ["ge", [2, 2], true],
    ["and", [true, false], false],
    ["or", [false, true], true],
    ["not", [false], true],
    ["has", [["a"], "a"], true],
    ["has", [{ a: 1 }, "b"], false],
    ["contains", ["abc", "bc"], true],
    ["contains", [["a"], "b"], false],
    ["startsWith", ["abc", "ab"], true],
    ["endsWith", ["abc", "bc"], true],
    ["if", [[], 1, 2], 2],
    ["default", [null, "x"], "x"],
    ["default", [false, "x"], false],
    ["lookup", [{ a: 1 }, "a"], 1],
    ["lookup", [["x", "y"], 1], "y"],
    ["join", [["a", 1, true], " "], "a 1 true"],
    ["join", [["a", "b"]], "a,b"],
    ["split", ["a, b,c", ","], ["a", "b", "c"]],
    ["split", ["", ","], []],
    ["lower", ["AB"], "ab"],
    ["upper", ["ab"], "AB"],
    ["trim", [" a\n"], "a"],
    ["replace", ["a.b.c", ".", "$&"], "a$&b$&c"],
    ["indent", ["a\n\nb", 2], "  a\n\n  b"],
    ["json", [{ a: [1, null] }], '{"a":[1,null]}'],
    ["yaml", [{ a: ["x", "yes: no"] }], 'a:\n  - x\n  - "yes: no"'],
    ["hostPort", ["::1", 9090], "[::1]:9090"],
    ["hostPort", ["n1", 9090], "n1:9090"],
    ["length", ["añ"], 2],
    ["length", [[1, 2]], 2],
    ["length", [new Map([["a", 1]])], 1],
    ["first", [["a", "b"]], "a"],
    ["last", [["a", "b"]], "b"],
    ["sort", [["b", "a"]], ["a", "b"]],
    ["sort", [[10, 9]], [9, 10]],
    ["unique", [["a", "b", "a"]], ["a", "b"]],
    ["concat", ["a", 1], "a1"],
    ["concat", [["a"], ["b"]], ["a", "b"]],
    ["list", ["a", 1], ["a", 1]],
    ["keys", [{ a: 1, b: 2 }], ["a", "b"]],
    ["values", [new Map([["a", 1]])], [1]],
    ["pluck", [[{ a: 1 }, { a: 2 }], "a"], [1, 2]],
    ["where", [roles, "r", "c"], [{ r: ["c"] }]],
    ["add", [1, 2, 3], 6],
    ["sub", [5, 2], 3],
    ["mul", [2, 3], 6],
    ["div", [7, 2], 3],
    ["mod", [7, 2], 1],
    ["min", [3, 1], 1],
    ["max", [3, 1], 3],
    ["number", [" 12.5"], 12.5],
    ["size", ["1KiB"], 1024],
    ["duration", ["5m"], 300],
  ];
  for (const [name, values, result] of cases)
    it(`${name} ${JSON.stringify(values)}`, () => expect(call(name, ...values)).to.deep.equal(result));

  it("refuse arguments of another type, and name the argument and the type", () => {
    for (const [name, values, message] of [
      ["lower", [5], "the argument of lower must be a text, not a number"],
      ["join", [["a", null], ","], "item 2 of what join gets is nothing"],
      ["and", [true, "false"], "argument 2 of and must be true or false, not a text"],
      ["first", [[]], "first of an empty list"],
      ["contains", [5, "x"], "contains looks into a text, a list or a map, not a number"],
      ["div", [1, 0], "the result is not a number"],
      ["size", ["5 apples"], "must be a size such as 10GiB"],
    ] as const)
      expect(() => call(name, ...values)).to.throw(message);
  });

  it("return secrets for secret arguments, and never show one in an error (S-7)", () => {
    const token = new Secret("s3cret");
    const made = [call("upper", token), call("concat", "a", token), call("json", { token }), call("shell", token)];
    for (const result of [...made, call("yaml", [token])]) expect(result).to.be.instanceOf(Secret);
    expect(call("if", true, "plain", token)).to.equal("plain");
    expect(call("default", token, "x")).to.equal(token);
    expect(call("split", token, "3")).to.satisfy((parts: unknown[]) => parts.every((part) => part instanceof Secret));
    expect(() => call("number", token)).to.throw(/^(?!.*s3cret)/);
  });

  it("shell quotes any text so that sh reads the same text (S-3)", () =>
    fc.assert(
      fc.property(
        fc.array(
          fc.string({ unit: "grapheme" }).filter((text) => !text.includes("\0")),
          { minLength: 1, maxLength: 20 },
        ),
        (words) => {
          const text = String(call("shell", words));
          const output = execFileSync("/bin/sh", ["-c", `printf '%s\\n' ${text} | od -An -v -tx1`], {
            encoding: "utf8",
          });
          const bytes = Buffer.from(output.replaceAll(/\s/g, ""), "hex").toString("utf8");
          expect(bytes).to.equal(words.map((word) => `${word}\n`).join(""));
        },
      ),
      { numRuns: 20 },
    ));
});
