import { expect } from "chai";
import { blobOf } from "#engine/step/blob.ts";
import { sh } from "#engine/step/sh.ts";
import type { Step } from "#engine/step/define.ts";
import { serviceRunning } from "#engine/modules/service-running.ts";
import { BatchPlanner } from "#engine/program/batch.ts";
import { compileStep, timeoutOf } from "#engine/program/compile-step.ts";
import { segmentText } from "#engine/program/segment.ts";
import { plannedStep, stepOf } from "#support/steps.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";

/** The timeout of a step with these keys and this step of its module. */
const timeoutWith = (keys: Partial<PlannedStep>, step: Partial<Step> = {}): number =>
  timeoutOf(plannedStep({ want: { a: "1" }, probe: sh`fact a 1`, ...step }, keys));

const retry = { attempts: 10, interval: 30 };

describe("a step's timeout", () => {
  const cases: Readonly<Record<string, readonly (readonly [Partial<PlannedStep>, Partial<Step>, number])[]>> = {
    "is 60 seconds, or the module's": [
      [{}, {}, 60],
      [{}, { timeout: 600 }, 600],
    ],
    "is under `retry`, for each attempt, the interval and five seconds": [
      [{ retry }, {}, 350],
      [{}, { retry }, 350],
    ],
    "is never shorter under `retry` than without": [
      [{ retry: { attempts: 2, interval: 1 } }, {}, 60],
      [{ retry }, { timeout: 900 }, 900],
    ],
    "depends on the step key `retry` rather than the module's": [
      [{ retry }, { retry: { attempts: 100, interval: 30 } }, 350],
      [{ retry }, { retry: { attempts: 3, interval: 1 } }, 350],
    ],
    "is the step key `timeout`, if set, also under `retry`": [
      [{ timeout: 20, retry }, { timeout: 600, retry }, 20],
      [{ timeout: 5000, retry }, { timeout: 600, retry }, 5000],
      [{ timeout: 20 }, { timeout: 600 }, 20],
    ],
    "is whole seconds, rounded up": [
      [{ timeout: 0.2 }, {}, 1],
      [{ retry: { attempts: 15, interval: 0.1 } }, {}, 77],
    ],
  };
  for (const [what, rows] of Object.entries(cases))
    it(what, () => {
      for (const [keys, step, seconds] of rows) expect(timeoutWith(keys, step)).to.equal(seconds);
    });
});

describe("the batches of a segment", () => {
  const cases: Readonly<Record<string, readonly [paths: string, places: string]>> = {
    "hold steps of one kind in one wave": ["d/a d/b", "batch 1, 1"],
    "have a wave for each kind": ["d/a f/b", "batch 1, 2"],
    "hold folders of all levels in one wave": ["d/a d/a/b", "batch 1, 1"],
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
  const plan = (name: string): PlannedStep =>
    plannedStep(stepOf(serviceRunning, { name }), { id: `s/${name}`, title: name });
  const compiled = (step: PlannedStep) => ({
    plan: step,
    compiled: compileStep(step, { owes: [], randomName: () => "0" }),
  });
  const textOf = (names: readonly string[]): string =>
    segmentText({ facts: false, steps: names.map((name) => compiled(plan(name))) });

  it("contains the common sh of steps of one module once, and their values for each", () => {
    const text = textOf(["nginx", "it-is@me.service", "sshd"]);
    expect(text.split("kt_probe=").length - 1).to.equal(1);
    for (const name of ["nginx.service", "sshd.service"]) expect(text).to.contain(name);
    const more = textOf(["nginx", "it-is@me.service", "sshd", "cron"]).length - text.length;
    expect(more).to.be.lessThan(textOf(["nginx"]).length / 2);
  });

  it("declares at most 200 steps at a time, and looks for all programs first", () => {
    const tool = { command: "tar", package: "tar" };
    const last = plannedStep(
      { want: { a: "1" }, probe: sh`fact a 1`, apply: sh`:`, tools: [tool] },
      { id: "l", title: "the last" },
    );
    const steps = [...Array.from({ length: 400 }, (_, at) => plan(`u${at}`)), last].map(compiled);
    const key = steps.at(-1)?.compiled.key;
    const calls = segmentText({ facts: false, steps })
      .split("\n")
      .filter((line) => /^(k_(add|go|forget|tools .*tar.*)|title_.*)$/.test(line));
    const counted = calls.join("\n").replaceAll(/(?:k_add\n)+/g, (lines) => `${lines.length / 6} steps\n`);
    expect(counted.split("\n")).to.deep.equal([
      "200 steps",
      `title_${key}='the last'`,
      `k_tools ${key} tar=tar`,
      "k_go",
      "k_forget",
      "200 steps",
      "k_go",
      "k_forget",
      "1 steps",
      "k_go",
    ]);
    expect(textOf(["nginx", "cron"])).to.not.include("k_forget");
  });

  it("asks for a first look, but not for a registered step, with a condition or without apply", () => {
    const looks = (keys: Partial<PlannedStep>): boolean =>
      segmentText({ facts: false, steps: [compiled({ ...plan("nginx"), ...keys })] }).includes("\nlook=1\n");
    expect([looks({}), looks({ register: "said" }), looks({ onlyIf: "true" })]).to.deep.equal([true, false, false]);
    expect(looks({ step: { want: { a: "1" }, probe: sh`fact a 1` } })).to.equal(false);
  });

  it("contains a single step's sh in full", () =>
    expect(textOf(["nginx"]))
      .to.contain("kt_probe=")
      .and.not.contain("kx_1="));
});
