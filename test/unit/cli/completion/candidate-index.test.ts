import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { indexed } from "#cli/completion/candidate-index.ts";
import { complete } from "#cli/completion/candidates.ts";
import { buildProgram } from "#cli/program.ts";
import { makeProject } from "#support/project.ts";
import type { TempDir } from "#support/temp-dir.ts";

describe("the index of completion candidates", () => {
  let project: TempDir;
  let names: string[];
  /** The number of times that the candidates were made. */
  let made: number;
  const pathOf = (name: string) => join(project.path, name);
  const index = () => pathOf(".kcore/completion/names");
  const files = () => names.map((shown) => ({ path: pathOf(shown), shown }));
  const make = async (): Promise<string> => {
    made++;
    return names.map((name) => readFileSync(pathOf(name), "utf8")).join("+");
  };
  const ask = (): Promise<string> => indexed(project.path, "names", files, make);

  beforeEach(async () => {
    project = await makeProject({ a: "one", b: "two" });
    mkdirSync(pathOf(".kcore"));
    [names, made] = [["a", "b"], 0];
  });
  afterEach(() => project.remove());

  it("computes candidates once for unchanged files", async () => {
    for (let time = 0; time < 3; time++) expect(await ask()).to.equal("one+two");
    expect(made).to.equal(1);
    expect(readFileSync(pathOf(".kcore/.gitignore"), "utf8")).to.equal("*\n");
  });

  it("computes candidates again for a changed, new, deleted, renamed or restored file", async () => {
    await ask();
    writeFileSync(pathOf("b"), "owt");
    expect(await ask()).to.equal("one+owt");
    writeFileSync(pathOf("c"), "");
    names = ["a", "b", "c"];
    expect(await ask()).to.equal("one+owt+");
    names = ["b", "c"];
    expect(await ask()).to.equal("owt+");
    writeFileSync(pathOf("d"), "owt");
    names = ["d", "c"];
    expect(await ask()).to.equal("owt+");
    expect(made).to.equal(5);
  });

  it("ignores an index that has a changed byte, is truncated or is of other files", async () => {
    await ask();
    const whole = readFileSync(index());
    const flipped = Array.from(whole, (byte, at) => Buffer.from(whole).fill(byte ^ 1, at, at + 1));
    for (const damaged of [...flipped, whole.subarray(0, -1), whole.subarray(0, 64), Buffer.alloc(0)]) {
      writeFileSync(index(), damaged);
      expect(await ask()).to.equal("one+two");
    }
    expect(made).to.equal(1 + flipped.length + 3);
    writeFileSync(pathOf("a"), "other");
    await ask();
    const other = readFileSync(index());
    writeFileSync(pathOf("a"), "one");
    writeFileSync(index(), other);
    expect(await ask()).to.equal("one+two");
  });

  it("answers without an index if no index can be written", async () => {
    rmSync(pathOf(".kcore"), { recursive: true });
    expect(await ask()).to.equal("one+two");
    expect(existsSync(pathOf(".kcore"))).to.equal(false);
    mkdirSync(index(), { recursive: true });
    expect(await ask()).to.equal("one+two");
    rmSync(pathOf(".kcore"), { recursive: true });
    writeFileSync(pathOf(".kcore"), "a file");
    expect(await ask()).to.equal("one+two");
    expect(await indexed(undefined, "names", files, make)).to.equal("one+two");
  });

  it("is complete after concurrent completions", async () => {
    expect(await Promise.all([ask(), ask(), ask()])).to.deep.equal(["one+two", "one+two", "one+two"]);
    made = 0;
    expect(await ask()).to.equal("one+two");
    expect(made).to.equal(0);
  });

  it("stores no candidates of files that changed while they were read, also if restored at the end", async () => {
    const torn = indexed(project.path, "names", files, async () => {
      renameSync(pathOf("a"), pathOf("former"));
      writeFileSync(pathOf("a"), "torn");
      const text = await make();
      // A file of its own: two writes within a tick of the clock have one time.
      writeFileSync(pathOf("later"), "one");
      renameSync(pathOf("later"), pathOf("a"));
      return text;
    });
    expect(await torn).to.equal("torn+two");
    expect(await ask()).to.equal("one+two");
  });

  it("does not answer from the index for a file that fails the trust check", async () => {
    await ask();
    const check = (): never => {
      throw new Error("not trusted");
    };
    await indexed(project.path, "names", () => files().map((file) => ({ ...file, check })), make);
    expect(made).to.equal(2);
  });

  it("completes nodes, groups, states and orchestrations of the project as it is now", async () => {
    const before = process.cwd();
    process.chdir(project.path);
    const offered = async (...words: readonly string[]) =>
      (await complete(await buildProgram(words), words)).candidates.map(({ value }) => value);
    const fits = async (suffix: string) => {
      expect(await offered("node", "approve", "zz")).to.deep.equal([`zz${suffix}`]);
      expect(await offered("ping", "--on", "group:")).to.deep.equal([`group:g${suffix}`]);
      expect(await offered("state", "apply", "zz")).to.deep.equal([`zz${suffix}`]);
      expect(await offered("orchestrate", "zz")).to.deep.equal([`zz${suffix}`]);
    };
    try {
      for (const suffix of ["1", "1", "2"]) {
        const roster = `groups: { g${suffix}: {} }\nnodes: { zz${suffix}: { address: 192.0.2.1, groups: [g${suffix}] } }\n`;
        writeFileSync(pathOf("roster/nodes.yaml"), roster);
        for (const folder of ["states", "orchestrate"]) {
          rmSync(pathOf(`${folder}/zz1.yaml`), { force: true });
          writeFileSync(pathOf(`${folder}/zz${suffix}.yaml`), "steps: []\n");
        }
        await fits(suffix);
      }
    } finally {
      process.chdir(before);
    }
  });
});
