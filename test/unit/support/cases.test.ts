import { expect } from "chai";
import { commandRun } from "#engine/modules/command-run.ts";
import { fileManaged } from "#engine/modules/file-managed.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { runCase } from "#support/cases/describe.ts";
import { parseTable } from "#support/cases/table.ts";

/** The error of a table's only case, or “nothing”. */
async function errorOf(module: ModuleDefinition, text: string): Promise<string> {
  const table = parseTable(text, "a.yaml");
  const [moves = []] = Object.values(table.cases);
  return runCase(module, table, "dash", moves).then(() => "nothing", String);
}

describe("a table of cases", () => {
  it("is refused with unknown keys, invalid values or invalid YAML, with file and line", () => {
    const wrong = (text: string) => () => parseTable(text, "a.yaml");
    expect(wrong("step: {}\nmachin: own\n")).to.throw("a.yaml:2: “machin” is no key here");
    expect(wrong("cases:\n  a b:\n    - run: {}\n      end: ok\n")).to.throw("a.yaml:4: “end” is no key here");
    expect(wrong("cases:\n  a:\n    - run: {}\n      ends: good\n")).to.throw(/^a\.yaml:4: cases\.a\.0\.ends: /);
    expect(wrong("step:\n  a: { args: {}\n")).to.throw(/^a\.yaml:3: /);
    expect(wrong("args: { a: !ha b }\n")).to.throw(/^a\.yaml:1: .*!ha/);
  });

  it("fails if a stand-in is called with arguments outside its table, also if the step succeeds", async () => {
    const error = await errorOf(
      commandRun,
      "commands: { demo: { -a *: x } }\ncases:\n  a:\n    - { run: { cmd: demo -a 1; demo -b; exit 0 }, ends: changed }\n",
    );
    expect(error).to.contain("move 1: a stand-in was not taught: demo -b");
  });

  it("has a server at $PORT during its case, and fails if the server ends", async () => {
    const cases = "cases: { a: [{ run: { cmd: busybox wget -q -O - http://127.0.0.1:$PORT/f }, stdout: b }] }\n";
    const table = (server: string) => `server: ${server}\nbefore: { write: { $DIR/f: b } }\n${cases}`;
    expect(await errorOf(commandRun, table("busybox httpd -f -p 127.0.0.1:$PORT -h $DIR"))).to.equal("nothing");
    expect(await errorOf(commandRun, table("test -e none"))).to.contain("test -e none ended with 1");
  });

  for (const [move, words] of [
    ["{ run: { content: a }, ends: ok }", "to deeply equal 'ok'"],
    ["{ run: { content: a }, have: { kind: file } }", "have: kind"],
    ["{ run: { content: a }, have: !all {} }", "have: its keys"],
    ["{ run: { content: a }, refused: FILE_IN_THE_WAY }", "to deeply equal 'failed'"],
    ["{ run: { content: a }, leaves: { $DIR/f: b } }", "/f: expected 'a'"],
    ["{ run: { content: a }, leaves: { $DIR/f: !lacks a } }", "to not include 'a'"],
    ["{ run: { content: a }, leaves: { $DIR/f: !order [a, b] } }", "does not hold"],
    ["{ run: { content: a b a }, leaves: { $DIR/f: !order [b, a] } }", "the order"],
    ["{ run: { content: a }, leaves: { $DIR/f: null } }", "to deeply equal null"],
    ["{ run: { content: a }, holds: test -e g }", "ended with 1"],
    ["{ run: { content: a }, notes: [b] }", "notes"],
  ] as const)
    it(`fails for a wrong expectation: ${move}`, async () =>
      expect(await errorOf(fileManaged, `args: { path: $DIR/f }\ncases: { a: [${move}] }\n`)).to.contain(words));
});
