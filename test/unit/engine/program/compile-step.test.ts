import { expect } from "chai";
import { blobOf } from "#engine/step/blob.ts";
import { sh } from "#engine/step/sh.ts";
import type { Step, StepData } from "#engine/step/define.ts";
import { compileStep, type CompiledStep } from "#engine/program/compile-step.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";
import { plannedStep } from "#support/steps.ts";

const blob = blobOf("hi\n");
const motd = { kind: "file", path: "/etc/motd", blob, mode: "0644", makeDirs: false } as const;
const noName = (): string => expect.fail("the step has no sensitive blob");

/** A step with these step keys, whose module wants /etc/motd. */
function compiled(keys: Partial<PlannedStep>, step: Partial<Step> = {}, randomName = noName): CompiledStep {
  const own = { want: { a: "1" }, probe: sh`fact a 1`, data: motd, ...step };
  return compileStep(plannedStep(own, keys), { owes: [], randomName });
}

/** A step key that a batch does not support, though the evidence proves such a step. */
const alone: Partial<PlannedStep> = { restartOn: ["s/b"] };
/** Step keys under which the evidence proves nothing. */
const silent: Readonly<Record<string, Partial<PlannedStep>>> = {
  unless: { unless: "test -e /etc/motd" },
  onlyIf: { onlyIf: "test -e /etc/motd" },
  runAs: { runAs: "nobody" },
  sensitive: { sensitive: true },
};

describe("a step that is pure data", () => {
  it("goes into a batch, without a text of its own", () =>
    expect(compiled({})).to.deep.include({ text: "", data: motd, late: [blob.sha256] }));

  it("has its content under another name than a step in a shell of its own, and as the batch wants it", () => {
    const [batched] = compiled({}).blobs;
    const [single] = compiled(alone, { apply: sh`cp ${blob} /etc/motd` }).blobs;
    expect([batched?.[1].form, single?.[1].form]).to.deep.equal(["assignment", "bytes"]);
    expect(single?.[0]).to.not.equal(batched?.[0]);
    for (const content of ["x".repeat(1 << 17), "\0"]) {
      const [left] = compiled({}, { data: { ...motd, blob: blobOf(content) } }).blobs;
      expect(left?.[1].form, "large, or binary").to.equal("bytes");
    }
  });

  it("has a shell of its own under each of these keys", () => {
    for (const [key, given] of Object.entries<Partial<PlannedStep>>({
      ...silent,
      creates: { creates: "/opt/tool" },
      retry: { retry: { attempts: 2, interval: 1 } },
      restartOn: alone,
      onChanges: { onChanges: ["s/b"] },
      onFailure: { onFailure: ["s/b"] },
      risk: { risk: "connectivity" },
    })) {
      const step = compiled(given);
      expect(["data" in step, step.text.includes("k_main")], key).to.deep.equal([false, true]);
    }
  });

  const odd: Readonly<Record<string, StepData>> = {
    "a blank in its path": { kind: "absent", path: "/etc/my motd", recurse: false },
    "an owner by number, which the evidence does not show": { ...motd, owner: "0" },
    "a blank in its target": { kind: "symlink", path: "/x", target: "a b", force: false, makeDirs: false },
  };
  for (const [what, data] of Object.entries(odd))
    it(`has a shell of its own with ${what}, and no evidence`, () => {
      const step = compiled({}, { data });
      expect([step.evidence, "data" in step]).to.deep.equal(["", false]);
    });
});

describe("a sensitive step", () => {
  it("has its content under a random name: one by the content would tell what it is", () => {
    const apply = sh`cp ${blobOf("secret", { sensitive: true })} /etc/motd`;
    expect([...compiled(alone, { apply }, () => "7a9c").blobs.keys()]).to.deep.equal(["7a9c"]);
  });

  it("shows no difference, whether its key or its module calls it sensitive", () => {
    const shows = (keys: Partial<PlannedStep>, step: Partial<Step> = {}): boolean =>
      compiled({ ...alone, ...keys }, { show: sh`cat /etc/motd`, ...step }).skeleton.includes("kt_show=");
    expect([shows({}), shows({ sensitive: true }), shows({}, { sensitive: true })]).to.deep.equal([true, false, false]);
  });
});

describe("the evidence of a step in a shell of its own", () => {
  const kinds: readonly (readonly [StepData, string])[] = [
    [motd, `f 0 - 0 - /etc/motd 81a4 - - 0 ${blob.sha256} 2`],
    [
      { kind: "directory", path: "/x", mode: "1777", owner: "root", group: "adm", makeDirs: true },
      "d 0 - 0 - /x 43ff root adm 1",
    ],
    [{ kind: "directory", path: "/x", makeDirs: true }, "d 0 - 0 - /x 4 - - 1"],
    [{ kind: "symlink", path: "/x", target: "../y", force: false, makeDirs: false }, "l 0 - 0 - /x ../y 0 0"],
    [{ kind: "absent", path: "/x", recurse: true }, "a 0 - 0 - /x 1"],
  ];
  for (const [data, words] of kinds)
    it(`is for a ${data.kind} what a batch would be told: ${words.slice(0, 30)}`, () =>
      expect(compiled(alone, { data }).evidence).to.equal(words));

  it("is none under keys that it cannot prove, or of a sensitive step, beside `creates` neither", () => {
    for (const creates of [{}, { creates: "/opt/tool" }]) {
      for (const [key, keys] of Object.entries(silent))
        expect(compiled({ ...keys, ...creates }).evidence, key).to.equal("");
      expect(compiled(creates, { sensitive: true }).evidence, "by its module").to.equal("");
    }
  });

  it("is under `creates` that its path exists, and nothing of the module's; none where that path is not plain", () => {
    expect(compiled({ creates: "/opt/tool" }).evidence).to.equal("e 0 - 0 - /opt/tool");
    expect(compiled({ creates: "/opt/my tool" }).evidence).to.equal("");
  });
});
