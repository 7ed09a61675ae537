import { existsSync, mkdirSync, readdirSync, statSync, unlinkSync } from "node:fs";
import { expect } from "chai";
import { blobOf } from "#engine/step/blob.ts";
import type { Step } from "#engine/step/define.ts";
import { stepOfData } from "#engine/step/fragments/files.ts";
import { sh } from "#engine/step/sh.ts";
import { draftOf, sessionOn } from "#support/sessions.ts";
import { folderOfEachTest } from "#support/temp-dir.ts";

/** More steps than a runner takes at a time (segment.ts). */
const many = 401;

describe("a segment of many steps", () => {
  const at = folderOfEachTest("many-steps");
  const file = (number: number): Step =>
    stepOfData({
      kind: "file",
      path: at("out", `f${number}`),
      blob: blobOf(`text ${number}`),
      mode: "0644",
      makeDirs: false,
    });
  const marker = (name: string): Step => ({ want: {}, always: true, probe: sh`:`, apply: sh`: >${at(name)}` });
  const files = () => Array.from({ length: many }, (_, number) => draftOf(`f${number}`, file(number)));

  beforeEach(() => mkdirSync(at("out")));

  it("applies all, and steps of the last portion react to the first step", async () => {
    const { session, outcomes } = sessionOn(at("state"));
    const drafts = [
      ...files(),
      draftOf("reacting", marker("reacted"), { onChanges: ["test/f0"] }),
      draftOf("idle", marker("idle"), { onChanges: ["test/reacting of another"] }),
    ];
    await session.perform([{ stage: "s", drafts }], { isLast: true });
    await session.finish("done");
    expect(readdirSync(at("out"))).to.have.length(many);
    expect(outcomes().filter((outcome) => /^f\d+ changed$/.test(outcome))).to.have.length(many);
    expect(outcomes().slice(-2)).to.deep.equal(["reacting changed", "idle skipped"]);
  });

  it("corrects one differing step in each portion, and leaves the others unchanged", async () => {
    for (const round of ["changed", "ok"]) {
      if (round === "ok") for (const number of [7, 207, 400]) unlinkSync(at("out", `f${number}`));
      const kept = round === "ok" ? statSync(at("out/f300")).ino : undefined;
      const { session, outcomes } = sessionOn(at("state"));
      await session.perform([{ stage: "s", drafts: files() }], { isLast: true });
      await session.finish("done");
      const changed = outcomes().filter((outcome) => outcome.endsWith(" changed"));
      if (round === "changed") expect(changed).to.have.length(many);
      else expect(changed).to.deep.equal(["f7 changed", "f207 changed", "f400 changed"]);
      expect(outcomes()).to.have.length(many);
      if (kept !== undefined) expect(statSync(at("out/f300")).ino).to.equal(kept);
    }
  });

  it("ends at the first failure, except for steps that react to it", async () => {
    const { session, outcomes } = sessionOn(at("state"));
    const [first, ...others] = files();
    const broken = draftOf("broken", { want: {}, always: true, probe: sh`:`, apply: sh`exit 3` });
    const drafts = [
      ...(first ? [first] : []),
      broken,
      ...others,
      draftOf("mending", marker("mended"), { onFailure: ["test/broken"] }),
    ];
    await session.perform([{ stage: "s", drafts }], { isLast: true });
    await session.finish("failed");
    expect(outcomes()).to.include.members(["f0 changed", "broken failed", "mending changed"]);
    expect(readdirSync(at("out"))).to.deep.equal(["f0"]);
    expect(existsSync(at("mended"))).to.equal(true);
  });
});
