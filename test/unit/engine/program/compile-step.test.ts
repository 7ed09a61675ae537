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

/** A step key that excludes a step from batches, but not from evidence. */
const unbatched: Partial<PlannedStep> = { restartOn: ["s/b"] };
/** Step keys under which a step has no evidence. */
const unproven: Readonly<Record<string, Partial<PlannedStep>>> = {
  unless: { unless: "test -e /etc/motd" },
  onlyIf: { onlyIf: "test -e /etc/motd" },
  runAs: { runAs: "nobody" },
  sensitive: { sensitive: true },
};

describe("a step whose module gives data", () => {
  it("goes into a batch, without a text of its own", () =>
    expect(compiled({})).to.deep.include({ text: "", data: motd, late: [blob.sha256] }));

  it("has its content as an assignment for a batch, under another name than for a shell of its own", () => {
    const [batched] = compiled({}).blobs;
    const [single] = compiled(unbatched, { apply: sh`cp ${blob} /etc/motd` }).blobs;
    expect([batched?.[1].form, single?.[1].form]).to.deep.equal(["assignment", "bytes"]);
    expect(single?.[0]).to.not.equal(batched?.[0]);
    for (const content of ["x".repeat(1 << 17), "\0"]) {
      const [left] = compiled({}, { data: { ...motd, blob: blobOf(content) } }).blobs;
      expect(left?.[1].form, "large, or binary").to.equal("bytes");
    }
  });

  it("runs in a shell of its own under keys that no batch supports", () => {
    for (const [key, given] of Object.entries<Partial<PlannedStep>>({
      ...unproven,
      creates: { creates: "/opt/tool" },
      retry: { retry: { attempts: 2, interval: 1 } },
      restartOn: unbatched,
      onChanges: { onChanges: ["s/b"] },
      onFailure: { onFailure: ["s/b"] },
      risk: { risk: "connectivity" },
    })) {
      const step = compiled(given);
      expect(["data" in step, step.text.includes("k_main")], key).to.deep.equal([false, true]);
    }
  });

  const unsupported: Readonly<Record<string, StepData>> = {
    "a blank in its path": { kind: "absent", path: "/etc/my motd", recurse: false },
    "an owner by number, which the evidence does not show": { ...motd, owner: "0" },
    "a blank in its target": { kind: "symlink", path: "/x", target: "a b", force: false, makeDirs: false },
  };
  for (const [what, data] of Object.entries(unsupported))
    it(`runs in a shell of its own, without evidence, with ${what}`, () => {
      const step = compiled({}, { data });
      expect([step.evidence, "data" in step]).to.deep.equal(["", false]);
    });
});

describe("a sensitive step", () => {
  it("sends its content under a random name, which reveals no hash", () => {
    const apply = sh`cp ${blobOf("secret", { sensitive: true })} /etc/motd`;
    expect([...compiled(unbatched, { apply }, () => "7a9c").blobs.keys()]).to.deep.equal(["7a9c"]);
  });

  it("shows no difference, whether its key or its module makes it sensitive", () => {
    const shows = (keys: Partial<PlannedStep>, step: Partial<Step> = {}): boolean =>
      compiled({ ...unbatched, ...keys }, { show: sh`cat /etc/motd`, ...step }).skeleton.includes("kt_show=");
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
    it(`is for a ${data.kind} the same line as in a batch: ${words.slice(0, 30)}`, () =>
      expect(compiled(unbatched, { data }).evidence).to.equal(words));

  it("is empty under keys that it cannot prove and for a sensitive step, also with `creates`", () => {
    for (const creates of [{}, { creates: "/opt/tool" }]) {
      for (const [key, keys] of Object.entries(unproven))
        expect(compiled({ ...keys, ...creates }).evidence, key).to.equal("");
      expect(compiled(creates, { sensitive: true }).evidence, "by its module").to.equal("");
    }
  });

  it("is under `creates` only the existence of its path, and empty for a path with blanks", () => {
    expect(compiled({ creates: "/opt/tool" }).evidence).to.equal("e 0 - 0 - /opt/tool");
    expect(compiled({ creates: "/opt/my tool" }).evidence).to.equal("");
  });
});
