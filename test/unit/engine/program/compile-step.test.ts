import { expect } from "chai";
import { blobOf } from "#engine/step/blob.ts";
import { sh } from "#engine/step/sh.ts";
import type { Step, StepData } from "#engine/step/define.ts";
import { compileStep, type CompiledStep } from "#engine/program/compile-step.ts";
import type { PlannedStep } from "#engine/states/planned-step.ts";

const motd: Extract<StepData, { kind: "file" }> = {
  kind: "file",
  path: "/etc/motd",
  blob: blobOf("hi\n"),
  mode: "0644",
  makeDirs: false,
};
const found = ["m 81a4 /etc/motd", `${blobOf("hi\n").sha256}  /etc/motd`];

/** A step with these step keys, whose module wants /etc/motd. */
function compiled(
  keys: Partial<PlannedStep>,
  step: Partial<Step> = {},
  randomName = (): string => {
    throw new Error("the step has no sensitive blob");
  },
): CompiledStep {
  const plan: PlannedStep = {
    id: "s/a",
    title: "a",
    state: "s",
    module: "test",
    at: { file: "states/s.yaml", line: 1, column: 1 },
    step: { want: { a: "1" }, probe: sh`fact a 1`, data: motd, ...step },
    require: [],
    onChanges: [],
    restartOn: [],
    onFailure: [],
    sensitive: false,
    ...keys,
  };
  return compileStep(plan, { owes: [], randomName });
}

/** A step key that asks for more than the batch lane knows, but not for more than the evidence proves. */
const alone: Partial<PlannedStep> = { restartOn: ["s/b"] };

describe("a step that is pure data", () => {
  it("goes into the batch lane, without a text of its own", () => {
    expect(compiled({})).to.deep.include({ text: "", data: motd, late: [blobOf("hi\n").sha256] });
  });

  it("has its content under another name than a step in a shell of its own, and as that lane wants it", () => {
    const [batched] = compiled({}).blobs;
    expect(batched?.[1].form).to.equal("assignment");
    const [single] = compiled(alone, { apply: sh`cp ${motd.blob} /etc/motd` }).blobs;
    expect(single?.[1].form).to.equal("bytes");
    expect(single?.[0]).to.not.equal(batched?.[0]);
  });

  const large = { ...motd, blob: blobOf("x".repeat(1 << 17)) };
  for (const [what, data] of Object.entries({ large, binary: { ...motd, blob: blobOf("\0") } }))
    it(`leaves a file that is ${what} as it is`, () => {
      const [blob] = compiled({}, { data }).blobs;
      expect(blob?.[1].form).to.equal("bytes");
    });

  const keys: Readonly<Record<string, Partial<PlannedStep>>> = {
    unless: { unless: "test -e /etc/motd" },
    onlyIf: { onlyIf: "test -e /etc/motd" },
    runAs: { runAs: "nobody" },
    sensitive: { sensitive: true },
    creates: { creates: "/opt/tool" },
    retry: { retry: { attempts: 2, interval: 1 } },
    restartOn: alone,
    onChanges: { onChanges: ["s/b"] },
    onFailure: { onFailure: ["s/b"] },
    risk: { risk: "connectivity" },
  };
  for (const [key, given] of Object.entries(keys))
    it(`has a shell of its own under \`${key}\``, () => {
      const step = compiled(given);
      expect(step.text).to.contain("k_main");
      expect(step).to.not.have.property("data");
    });

  const odd: Readonly<Record<string, StepData>> = {
    "a blank in its path": { kind: "absent", path: "/etc/my motd", recurse: false },
    "an owner by number, which the evidence does not show": { ...motd, owner: "0" },
    "a blank in its target": { kind: "symlink", path: "/x", target: "a b", force: false, makeDirs: false },
  };
  for (const [what, data] of Object.entries(odd))
    it(`has a shell of its own with ${what}, and no evidence`, () => {
      expect(compiled({}, { data })).to.deep.include({ quick: [] });
      expect(compiled({}, { data })).to.not.have.property("data");
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
  it("is that of its data", () => {
    expect(compiled(alone).quick).to.deep.equal(found);
  });

  const kinds: readonly (readonly [StepData, readonly string[]])[] = [
    [
      { kind: "directory", path: "/x", mode: "1777", owner: "root", group: "adm", makeDirs: true },
      ["m 43ff /x", "u root /x", "g adm /x"],
    ],
    [{ kind: "directory", path: "/x", makeDirs: true }, ["t4 /x"]],
    [{ kind: "symlink", path: "/x", target: "../y", force: false, makeDirs: false }, ["l '/x' -> '../y'"]],
    [{ kind: "absent", path: "/x", recurse: true }, ["-/x"]],
  ];
  for (const [data, lines] of kinds)
    it(`is for ${JSON.stringify(data)} what stat prints`, () => {
      expect(compiled(alone, { data }).quick).to.deep.equal(lines);
    });

  for (const [key, keys] of Object.entries({
    unless: { unless: "test -e /etc/motd" },
    onlyIf: { onlyIf: "test -e /etc/motd" },
    runAs: { runAs: "nobody" },
    sensitive: { sensitive: true },
  })) {
    it(`is none under \`${key}\``, () => {
      expect(compiled(keys).quick).to.deep.equal([]);
    });

    it(`is none under \`${key}\` beside \`creates\` either`, () => {
      expect(compiled({ ...keys, creates: "/opt/tool" }).quick).to.deep.equal([]);
    });
  }

  it("is none when the module calls the step sensitive", () => {
    expect(compiled({}, { sensitive: true }).quick).to.deep.equal([]);
    expect(compiled({ creates: "/opt/tool" }, { sensitive: true }).quick).to.deep.equal([]);
  });

  it("is under `creates` that its path exists, and nothing of the module's", () => {
    expect(compiled({ creates: "/opt/tool" }).quick).to.deep.equal(["+/opt/tool"]);
  });

  it("is none where `creates` names a path that is not plain, whatever the module gives", () => {
    expect(compiled({ creates: "/opt/my tool" }).quick).to.deep.equal([]);
  });
});
