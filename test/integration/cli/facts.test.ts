import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { factCatalogue } from "#engine/facts/catalogue.ts";
import { selectFact } from "#engine/facts/paths.ts";
import type { RunEvent } from "#engine/events/event.ts";
import { TestProject } from "#support/kcore.ts";

describe("kcore facts, and targets that select by facts", () => {
  let project: TestProject;
  beforeEach(() => {
    project = new TestProject({
      "states/greet.yaml": `steps:
  - id: note
    command.run: { cmd: "echo {{shell (default facts.hardware.serial 'no serial')}} {{shell facts.network.interfaces.lo.addresses.0}}" }
    register: said
  - id: none
    when: "{{eq facts.os.id 'no such system'}}"
    command.run: { cmd: "false" }
`,
      "states/wrong.yaml": 'steps:\n  - id: x\n    command.run: { cmd: "echo {{shell facts.os.idd}}" }\n',
    });
    project.write({
      "project/roster/more.yaml": `nodes:\n  also: { transport: local, stateDir: ${project.path}/other, dc: DC2 }\n`,
    });
  });
  afterEach(() => project.remove());
  const kept = () => readdirSync(join(project.project, ".kcore/facts"));

  it("gathers every fact of the catalogue, prints chosen ones, and keeps them", async () => {
    const all = JSON.parse((await project.kcore("facts", "here", "-o", "json")).stdout) as Record<string, unknown>;
    for (const { name } of factCatalogue.filter((fact) => !/\.(N|NAME)\./.test(fact.name)))
      expect(selectFact(all["here"], name), name).not.to.equal(undefined);
    // Facts that sh gathers, and facts that awk gathers.
    for (const name of ["hostname", "os.name", "cpu.count", "memory.totalKiB"])
      expect(selectFact(all["here"], name), name).not.to.equal(null);
    expect(kept()).to.deep.equal(["here.json"]);
    const some = await project.kcore("facts", "here,also", "os.id", "cpu.count");
    expect(some.stdout.split("\n")[0]).to.match(/^NODE +os\.id +cpu\.count$/);
    expect(some.stdout.split("\n")).to.have.length(4);
    const old = await project.kcore("facts", "--kept", "*", "os.id", "-o", "json");
    expect([old.code, JSON.parse(old.stdout)]).to.deep.equal([
      1,
      {
        here: { "os.id": selectFact(all["here"], "os.id") },
        gone: {
          outcome: "failed",
          problem: {
            code: "TARGET_FACTS_UNKNOWN",
            message: "its facts were never gathered",
            hint: "kcore facts gone",
          },
        },
        also: { "os.id": selectFact(all["here"], "os.id") },
      },
    ]);
    const differ = await project.kcore("facts", "--diff", "here", "also");
    expect(differ.stdout).to.equal("no differences\n");
    const unknown = await project.kcore("facts", "here", "os.idd");
    expect([unknown.code, unknown.stderr]).to.deep.equal([
      2,
      "no fact “os.idd”  [USAGE]\n  hint: did you mean “os.id”?\n",
    ]);
  });

  it("names the nodes whose facts a target needs but lacks, and gathers them with --refresh-facts", async () => {
    const words = ["exec", "--on", "dc:DC2 and fact:kernel.release>=1", "-o", "json"];
    const first = await project.kcore(...words, "--", "true");
    expect(first.code).to.equal(2);
    expect(first.stderr).to.match(/"code":"TARGET_FACTS_UNKNOWN".*not known, or too old, of also/);
    expect(first.stderr).to.include("kcore facts --on 'also'");
    const second = await project.kcore(...words, "--refresh-facts", "--", "true");
    expect((JSON.parse(second.stdout) as { node: string }[]).map(({ node }) => node)).to.deep.equal(["also"]);
    expect(kept()).to.deep.equal(["also.json"]);
    const third = await project.kcore(...words, "--", "true");
    expect(third.code).to.equal(0);
    const tooOld = await project.kcore(...words, "--facts-age", "0m", "--", "true");
    expect(tooOld.code).to.equal(2);
    const left = await project.kcore("roster", "list", "--on", "fact:kernel.release>=1", "--unknown-facts", "skip");
    expect(left.stdout.trimEnd().split("\n")).to.have.length(2);
  });

  it("passes facts to states, null where the node has no such fact", async () => {
    const { stdout, code } = await project.kcore("state", "apply", "greet", "--on", "here", "--output", "json");
    expect(code).to.equal(0);
    const events = stdout
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as RunEvent);
    const printed = events.flatMap((event) => (event.type === "step.output" ? [event.text] : [])).join("");
    expect(printed).to.match(/ 127\.0\.0\.1\/8$/m);
    // A run that gathered facts keeps them, too.
    const file = JSON.parse(readFileSync(join(project.project, ".kcore/facts/here.json"), "utf8")) as { run: string };
    expect(readdirSync(join(project.project, ".kcore/runs"))).to.include(file.run);
    const wrong = await project.kcore("state", "apply", "wrong", "--on", "here");
    expect(wrong.code).to.equal(2);
    expect(wrong.stderr).to.include("“facts.os” has no “idd”");
  });
});
