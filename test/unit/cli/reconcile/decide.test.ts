import { expect } from "chai";
import { decide, questionsOf, type PassFacts } from "#cli/reconcile/decide.ts";
import type { NodeDrift } from "#cli/drift/look-for-drift.ts";
import type { StageModel } from "#engine/events/run-model.ts";

const step = { stage: "web", title: "issue", module: "file.managed", changes: [] };
const node = (name: string, count: number, more: Partial<NodeDrift> = {}): NodeDrift => ({
  node: name,
  outcome: "done",
  differs: Array.from({ length: count }, () => step),
  unknown: [],
  always: [],
  left: [],
  ...more,
});
/** 2026-12-01 was a Tuesday. */
const tuesday = Date.parse("2026-12-01T10:00:00Z");
const decideOn = (more: Partial<PassFacts>) =>
  decide({
    drifts: [node("n1", 2), node("n2", 1), node("n3", 0)],
    problems: [],
    questions: [],
    command: "kcore state apply web --on '*'",
    takesNodes: true,
    limits: { windows: [] },
    isHeld: false,
    now: tuesday,
    ...more,
  });
const applied = ["n1", "n2"];

describe("the nodes that a pass changes", () => {
  it("are those that differ, within the limits", () => {
    expect(decideOn({})).to.deep.equal({ apply: applied, notices: [] });
    expect(decideOn({ limits: { windows: [], maxChanges: 3, maxNodes: 2 } }).apply).to.deep.equal(applied);
    const idle = node("n3", 0, { unknown: [step], always: [step] });
    expect(decideOn({ drifts: [node("n1", 1), idle], limits: { windows: [], maxChanges: 1 } }).apply).to.deep.equal([
      "n1",
    ]);
    expect(decideOn({ drifts: [node("n3", 0)], isHeld: true })).to.deep.equal({ apply: [], notices: [] });
  });

  const waiting: readonly [string, Partial<PassFacts>, string][] = [
    [
      "more steps than allowed",
      { limits: { windows: [], maxChanges: 2 } },
      "the run has more steps than a pass may change (2)",
    ],
    [
      "more steps than allowed, with those that each run carries out",
      { drifts: [node("n1", 1, { unknown: [step], always: [step] })], limits: { windows: [], maxChanges: 2 } },
      "the run has more steps than a pass may change (2)",
    ],
    [
      "more steps than allowed on nodes that a whole run takes along",
      {
        drifts: [node("n1", 1), node("n2", 0, { always: [step, step] })],
        takesNodes: false,
        limits: { windows: [], maxChanges: 2 },
      },
      "the run has more steps than a pass may change (2)",
    ],
    [
      "more nodes than allowed",
      { limits: { windows: [], maxNodes: 1 } },
      "more nodes differ than a pass may change (1)",
    ],
    ["a question", { questions: ["Sure?"] }, "the run asks a person: Sure?"],
  ];
  for (const [what, more, waits] of waiting)
    it(`are none with ${what}, which a person is told with the command`, () => {
      const { apply, notices, ...decision } = decideOn(more);
      expect([apply, decision.waits]).to.deep.equal([[], waits]);
      expect(notices.map(({ event, text }) => [event, text])).to.deep.equal([
        ["question", `${waits}; to do it: kcore state apply web --on '*'`],
      ]);
    });

  it("stay the same notice while the numbers beyond a limit change", () => {
    const keys = [2, 3].map(
      (count) => decideOn({ drifts: [node("n1", count)], limits: { windows: [], maxChanges: 1 } }).notices[0]?.text,
    );
    expect(keys[0]).to.equal(keys[1]);
  });

  it("are none outside of the windows, after a failure, and after a dry run that stopped", () => {
    const windows = [{ days: ["mon" as const], from: "08:00", to: "16:00" }];
    expect(decideOn({ limits: { windows } })).to.include({ waits: "outside of the windows" });
    expect(decideOn({ limits: { windows }, now: tuesday - 86_400_000 }).apply).to.deep.equal(applied);
    expect(decideOn({ isHeld: true }).apply).to.deep.equal([]);
    const stopped = decideOn({ problems: [{ code: "STAGE_INVALID", message: "no such stage" }] });
    expect([stopped.apply, stopped.notices.map(({ event }) => event)]).to.deep.equal([[], ["failure"]]);
  });

  it("leave out nodes that are down, held by a run, failed, or in need of a grant; only the last two are told", () => {
    const drifts = [
      node("n1", 1),
      node("down", 1, { outcome: "unreachable", problem: { code: "HOST_UNREACHABLE", message: "no answer" } }),
      node("held", 1, { outcome: "failed", problem: { code: "NODE_LOCKED", message: "run x holds it" } }),
      node("bad", 1, { outcome: "failed", problem: { code: "PROBE_FAILED", message: "no such tool" } }),
      node("disk", 1, { outcome: "failed", problem: { code: "DISK_HAS_DATA", message: "wipe? --grant a:1" } }),
    ];
    const { apply, notices } = decideOn({ drifts });
    expect(apply).to.deep.equal(["n1"]);
    expect(notices.map(({ event, text }) => [event, text.split(":")[0]])).to.deep.equal([
      ["failure", "bad"],
      ["question", "disk"],
    ]);
    expect(decideOn({ drifts, takesNodes: false }).apply, "an orchestration that names its nodes itself").to.deep.equal(
      [],
    );
  });

  it("name what stays of a step that left its state", () => {
    const { apply, notices } = decideOn({ drifts: [node("n1", 0, { left: ["no longer managed: file /x"] })] });
    expect([apply, notices.map(({ text }) => text)]).to.deep.equal([[], ["n1: no longer managed: file /x"]]);
  });
});

describe("the questions that a run would ask", () => {
  const stage = (action: string, outcome: string, note = "") =>
    ({
      id: "s",
      title: "s",
      nodes: [],
      state: "ok",
      actions: [{ stage: "s", action, outcome, note }],
    }) as unknown as StageModel;

  it("are its confirmations, and the passphrase if a key is needed and it was not given", () => {
    const stages = [
      stage("confirm", "ok", "would ask: Sure?"),
      stage("pki.issueNode", "unknown"),
      stage("wait", "unknown"),
    ];
    expect(questionsOf({ stages }, true)).to.deep.equal(["Sure?"]);
    expect(questionsOf({ stages }, false)).to.deep.equal(["Sure?", "the passphrase of the CA's keys"]);
    expect(questionsOf({ stages: [stage("pki.issueNode", "ok")] }, false)).to.deep.equal([]);
  });
});
