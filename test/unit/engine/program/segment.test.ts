import { expect } from "chai";
import { blobOf } from "#engine/step/blob.ts";
import { sh } from "#engine/step/sh.ts";
import type { Step } from "#engine/step/define.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { BatchPlanner } from "#engine/program/batch.ts";
import { compileStep, timeoutOf } from "#engine/program/compile-step.ts";
import { segmentText } from "#engine/program/segment.ts";
import { stepOf } from "#support/steps.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";

/** The timeout of a step with these step keys, whose module says `step`. */
function timeoutWith(keys: Partial<PlannedStep>, step: Partial<Step> = {}): number {
  return timeoutOf({
    id: "s/a",
    title: "a",
    state: "s",
    module: "test",
    at: { file: "states/s.yaml", line: 1, column: 1 },
    step: { want: { a: "1" }, probe: sh`fact a 1`, ...step },
    require: [],
    onChanges: [],
    restartOn: [],
    onFailure: [],
    sensitive: false,
    ...keys,
  });
}

const retry = { attempts: 10, interval: 30 };

describe("a step's timeout", () => {
  it("is 60 seconds unless the module says otherwise", () => {
    expect(timeoutWith({})).to.equal(60);
    expect(timeoutWith({}, { timeout: 600 })).to.equal(600);
  });

  it("leaves room for every attempt under `retry`: its interval and five seconds", () => {
    expect(timeoutWith({ retry })).to.equal(350);
    expect(timeoutWith({}, { retry })).to.equal(350);
  });

  it("is never shorter under `retry` than without", () => {
    expect(timeoutWith({ retry: { attempts: 2, interval: 1 } })).to.equal(60);
    expect(timeoutWith({ retry }, { timeout: 900 })).to.equal(900);
  });

  it("goes by the step key `retry`, not by the module's", () => {
    expect(timeoutWith({ retry }, { retry: { attempts: 100, interval: 30 } })).to.equal(350);
    expect(timeoutWith({ retry }, { retry: { attempts: 3, interval: 1 } })).to.equal(350);
  });

  it("is the step key `timeout` where there is one, under `retry` too, longer or shorter", () => {
    expect(timeoutWith({ timeout: 20, retry }, { timeout: 600, retry })).to.equal(20);
    expect(timeoutWith({ timeout: 5000, retry }, { timeout: 600, retry })).to.equal(5000);
    expect(timeoutWith({ timeout: 20 }, { timeout: 600 })).to.equal(20);
  });

  it("is whole seconds, rounded up", () => {
    expect(timeoutWith({ timeout: 0.2 })).to.equal(1);
    expect(timeoutWith({ retry: { attempts: 15, interval: 0.1 } })).to.equal(77);
  });
});

describe("the batches of a segment", () => {
  const cases: Readonly<Record<string, readonly [paths: string, places: string]>> = {
    "hold steps of one kind in one wave": ["d/a d/b", "batch 1, 1"],
    "have a wave for each kind": ["d/a f/b", "batch 1, 2"],
    "have a wave for what lies beneath a path of the one before": ["d/a d/a/b", "batch 1, 2"],
    "hold no path twice": ["f/a f/a", "batch 1, batch 1"],
    "hold nothing above a path of theirs": ["f/a/b d/a", "batch 1, batch 1"],
    "hold nothing beneath a file": ["f/a f/a/b", "batch 1, batch 1"],
  };
  for (const [what, [paths, places]] of Object.entries(cases))
    it(what, () => {
      const planner = new BatchPlanner();
      const placed = paths.split(" ").map((text) => {
        const path = text.slice(1);
        const { opens, wave } = planner.place(
          text.startsWith("d")
            ? { kind: "directory", path, makeDirs: false }
            : { kind: "file", path, makeDirs: false, blob: blobOf("") },
        );
        return `${opens ? "batch " : ""}${wave}`;
      });
      expect(placed.join(", ")).to.equal(places);
    });
});

describe("a segment's text", () => {
  const plan = (name: string): PlannedStep => ({
    id: `s/${name}`,
    title: name,
    state: "s",
    module: "service.running",
    at: { file: "states/s.yaml", line: 1, column: 1 },
    step: stepOf(serviceRunning, { name }),
    require: [],
    onChanges: [],
    restartOn: [],
    onFailure: [],
    sensitive: false,
  });
  const textOf = (names: readonly string[]): string =>
    segmentText({
      facts: false,
      steps: names.map((name) => ({
        plan: plan(name),
        compiled: compileStep(plan(name), { owes: [], randomName: () => "0" }),
      })),
    });

  it("has what steps of one module share once, and their values for each", () => {
    const text = textOf(["nginx", "it-is@me.service", "sshd"]);
    expect(text.split("kt_probe=").length - 1).to.equal(1);
    for (const name of ["nginx.service", "sshd.service"]) expect(text).to.contain(name);
    const more = textOf(["nginx", "it-is@me.service", "sshd", "cron"]).length - text.length;
    expect(more).to.be.lessThan(textOf(["nginx"]).length / 2);
  });

  it("asks for a first look without readers, but not where what the step says is kept", () => {
    const looks = (keys: Partial<PlannedStep>): boolean => {
      const step = { ...plan("nginx"), ...keys };
      const compiled = compileStep(step, { owes: [], randomName: () => "0" });
      return segmentText({ facts: false, steps: [{ plan: step, compiled }] }).includes("\nlook=1\n");
    };
    expect([looks({}), looks({ register: "said" }), looks({ onlyIf: "true" })]).to.deep.equal([true, false, false]);
    expect(looks({ step: { want: { a: "1" }, probe: sh`fact a 1` } })).to.equal(false);
  });

  it("has the text of a single step with it", () => {
    expect(textOf(["nginx"]))
      .to.contain("kt_probe=")
      .and.not.contain("kx_1=");
  });
});
