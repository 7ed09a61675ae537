import { expect } from "chai";
import { sh } from "#engine/step/sh.ts";
import type { Step } from "#engine/step/define.ts";
import { compileStep, type CompiledStep } from "#engine/program/compile-step.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";

/** The quick lines of a step with these step keys, whose module wants /etc/motd there with mode 0644. */
function quickWith(keys: Partial<PlannedStep>, step: Partial<Step> = {}): CompiledStep["quick"] {
  const plan: PlannedStep = {
    id: "s/a",
    title: "a",
    state: "s",
    module: "test",
    at: { file: "states/s.yaml", line: 1, column: 1 },
    step: {
      want: { a: "1" },
      probe: sh`fact a 1`,
      quick: [{ kind: "mode", path: "/etc/motd", type: "file", mode: 0o644 }],
      ...step,
    },
    require: [],
    onChanges: [],
    restartOn: [],
    onFailure: [],
    sensitive: false,
    ...keys,
  };
  const randomName = (): string => {
    throw new Error("the step has no sensitive blob");
  };
  return compileStep(plan, { owes: [], randomName }).quick;
}

describe("a step's quick lines", () => {
  it("are those of its module", () => {
    expect(quickWith({})).to.deep.equal({ lines: ["m 81a4 /etc/motd"], stat: ["/etc/motd"], sha256: [] });
  });

  const decidedInSh: Readonly<Record<string, Partial<PlannedStep>>> = {
    unless: { unless: "test -e /etc/motd" },
    onlyIf: { onlyIf: "test -e /etc/motd" },
    runAs: { runAs: "nobody" },
    sensitive: { sensitive: true },
  };
  for (const [key, keys] of Object.entries(decidedInSh)) {
    it(`are none under \`${key}\``, () => {
      expect(quickWith(keys)).to.equal(undefined);
    });

    it(`are none under \`${key}\` beside \`creates\` either`, () => {
      expect(quickWith({ ...keys, creates: "/opt/tool" })).to.equal(undefined);
    });
  }

  it("are none when the module calls the step sensitive", () => {
    expect(quickWith({}, { sensitive: true })).to.equal(undefined);
    expect(quickWith({ creates: "/opt/tool" }, { sensitive: true })).to.equal(undefined);
  });

  it("are under `creates` that its path exists, and nothing of the module's", () => {
    const exists = { lines: ["+/opt/tool"], stat: ["/opt/tool"], sha256: [] };
    expect(quickWith({ creates: "/opt/tool" })).to.deep.equal(exists);
    expect(quickWith({ creates: "/opt/tool" }, { quick: [] })).to.deep.equal(exists);
  });

  it("are none where `creates` names a path that is not plain, whatever the module gives", () => {
    expect(quickWith({ creates: "/opt/my tool" })).to.equal(undefined);
  });
});
