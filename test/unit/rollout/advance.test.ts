import { expect } from "chai";
import { advance } from "#rollout/advance.ts";
import { fenceOf } from "#rollout/order.ts";
import type { NodePhase, Report, Row } from "#rollout/records.ts";
import type { RolloutView } from "#rollout/view.ts";
import { aNode, aSpec, old, SteppedRollout, target } from "#support/stepped-rollout.ts";

const now = 50_000_000;

interface Case {
  readonly row?: Partial<Row>;
  /** Undefined: the node said nothing to this owner. */
  readonly report?: Partial<Report> | undefined;
  readonly spec?: object;
  readonly view?: Partial<RolloutView>;
  /** Seconds since the phase began. */
  readonly age?: number;
}

/** What becomes of a row in a phase: `PHASE`, with the failure's kind; `-`: nothing. */
function next(phase: NodePhase, { row: more = {}, report, spec = {}, view: around = {}, age = 0 }: Case): string {
  const row: Row = { epoch: 2, owner: "c1", generation: 1, seq: 5, phase, since: now - age * 1000, ...more };
  const { view } = new SteppedRollout({ nodes: ["n1"] });
  const fence = fenceOf("u", row);
  const word = report && { epoch: 1, fence, state: "fenced" as const, present: old, at: now, ...report };
  const became = advance(
    {
      ...view,
      spec: aSpec(spec),
      owner: { epoch: 2, owner: "c1" },
      now,
      reports: new Map(word ? [["n1", word]] : []),
      ...around,
    },
    "n1",
    row,
  );
  if (!became) return "-";
  const isSame = became.phase === "rebooting" || became.phase === phase;
  expect(became.seq, "an order of its own").to.equal(isSame ? 5 : 6);
  if (became.phase !== phase) expect(became).to.not.have.property("asked");
  if (became.failure) return `${became.phase} ${became.failure.kind}`;
  return became.asked === true ? `${became.phase} asked` : became.phase;
}

const earlier = { name: "u", epoch: 2, owner: "c1", generation: 1, seq: 4 };
const failed = { state: "failed", failure: { kind: "service", message: "it died" } } as const;

describe("a node that prepares", () => {
  it("is prepared when it says so of this very order", () => {
    expect(next("preparing", { report: { state: "prepared" } })).to.equal("prepared");
    expect(next("preparing", { report: { state: "preparing" } })).to.equal("-");
    expect(next("preparing", { report: { state: "prepared", fence: earlier } })).to.equal("-");
    expect(next("preparing", {})).to.equal("-");
  });

  it("fails as it says, or when it is late", () => {
    expect(next("preparing", { report: failed })).to.equal("failed service");
    expect(next("preparing", { report: { ...failed, fence: earlier } })).to.equal("-");
    expect(next("preparing", { report: { state: "failed" } })).to.equal("failed activation");
    const spec = { timeouts: { prepareSeconds: 100 } };
    expect(next("preparing", { spec, age: 160 })).to.equal("-");
    expect(next("preparing", { spec, age: 161 })).to.equal("failed build");
  });

  it("waits when it is prepared, unless it fails", () => {
    expect(next("prepared", { report: { state: "prepared" } })).to.equal("-");
    expect(next("prepared", { report: failed })).to.equal("failed service");
  });
});

describe("a node that is drained", () => {
  const spec = { drain: { enabled: true, command: "drain", timeoutSeconds: 100 } };
  const answer = (ok: boolean): Partial<RolloutView> => ({
    answers: new Map([["n1/drain", { epoch: 2, owner: "c1", generation: 1, seq: 5, ok }]]),
  });

  it("is activated when the bastion says that it is done, at once when there is nothing to do", () => {
    expect(next("draining", { spec })).to.equal("-");
    expect(next("draining", { spec, view: answer(true) })).to.equal("activating");
    expect(next("draining", { spec: { drain: { enabled: true } } })).to.equal("activating");
  });

  it("fails when that fails, or takes too long", () => {
    expect(next("draining", { spec, view: answer(false) })).to.equal("failed drain");
    expect(next("draining", { spec, age: 100 })).to.equal("-");
    expect(next("draining", { spec, age: 101 })).to.equal("failed drain");
  });
});

describe("a node that is activated", () => {
  it("is verified when it says that it is activated, also after a reboot", () => {
    for (const phase of ["activating", "rebooting"] as const) {
      expect(next(phase, { report: { state: "activated" } }), phase).to.equal("verifying");
      expect(next(phase, { report: { state: "activated", fence: earlier } }), phase).to.equal("-");
      expect(next(phase, { report: failed }), phase).to.equal("failed service");
    }
  });

  it("reboots by the same order", () => {
    expect(next("activating", { report: { state: "rebooting" } })).to.equal("rebooting");
    expect(next("rebooting", { report: { state: "rebooting" } })).to.equal("-");
  });

  it("is given up a minute after its time", () => {
    const spec = { timeouts: { activateSeconds: 10, rebootSeconds: 20 } };
    expect(next("activating", { spec, age: 70 })).to.equal("-");
    expect(next("activating", { spec, age: 71 })).to.equal("failed unreachable");
    expect(next("rebooting", { spec, age: 80 })).to.equal("-");
    expect(next("rebooting", { spec, age: 81 })).to.equal("failed reboot");
    const always = { ...spec, activation: { rebootPolicy: "always" } };
    expect(next("activating", { spec: always, age: 80 })).to.equal("-");
    expect(next("activating", { spec: always, age: 81 })).to.equal("failed reboot");
  });
});

describe("a node that is verified", () => {
  const well = aNode("n1", { version: target.version });
  const on = (more: object): Partial<RolloutView> => ({ nodes: new Map([["n1", { ...well, ...more }]]) });
  const report = { state: "activated" as const, present: target };
  const ill = [{ isReady: false }, { version: "1.0" }, { replication: "behind" }, { isApproved: false }];

  it("has succeeded when it is ready, of the target's version, with its replication healthy", () => {
    expect(next("verifying", { report, view: on({}) })).to.equal("succeeded");
    expect(next("verifying", { report, view: { ...on({ version: "x" }), target: { id: "t", version: "" } } })).to.equal(
      "succeeded",
    );
  });

  it("has some time until it is, and then failed a gate", () => {
    const spec = { timeouts: { verifySeconds: 100 } };
    for (const view of [...ill.map(on), { nodes: new Map() }]) {
      expect(next("verifying", { spec, report, view, age: 100 })).to.equal("-");
      expect(next("verifying", { spec, report, view, age: 101 })).to.equal("failed gate");
    }
  });

  it("fails at once when it says so", () => {
    expect(next("verifying", { report: failed, view: on({}) })).to.equal("failed service");
  });

  const gates = (within: number): object => ({
    healthGates: [
      { name: "web", command: "curl", withinSeconds: within },
      { name: "db", command: "ask", withinSeconds: within },
    ],
    timeouts: { verifySeconds: 100 },
  });
  const answered = (answers: Readonly<Record<string, boolean>>, more: object = {}): Partial<RolloutView> => ({
    ...on(more),
    answers: new Map(
      Object.entries(answers).map(([gate, ok]) => [
        `n1/gate ${gate}`,
        { epoch: 2, owner: "c1", generation: 1, seq: 5, ok },
      ]),
    ),
  });
  const asked = { asked: true };

  it("asks the bastion for its gates only when it is well", () => {
    const spec = gates(60);
    for (const view of [...ill.map(on), { nodes: new Map() }])
      expect(next("verifying", { spec, report, view })).to.equal("-");
    expect(next("verifying", { spec, report, view: on({}) })).to.equal("verifying asked");
    expect(next("verifying", { spec, report, row: asked, view: on({}) })).to.equal("-");
  });

  it("waits for the bastion's gates, and fails by them", () => {
    const gate = (answers: Readonly<Record<string, boolean>>) =>
      next("verifying", { spec: gates(60), report, row: asked, view: answered(answers) });
    expect(gate({ web: true })).to.equal("-");
    expect(gate({ web: true, db: true })).to.equal("succeeded");
    expect(gate({ web: false })).to.equal("failed gate");
    expect(gate({ web: true, db: false })).to.equal("failed gate");
  });

  it("gives each gate its own time, behind that of the other checks", () => {
    // A minute to say so besides.
    const at = (age: number, answers: Readonly<Record<string, boolean>>, more: object = {}) =>
      next("verifying", { spec: gates(500), report, row: asked, view: answered(answers, more), age });
    expect([at(660, {}), at(661, {})]).to.deep.equal(["-", "failed gate"]);
    expect([at(1160, { web: true }), at(1161, { web: true })]).to.deep.equal(["-", "failed gate"]);
    // What it was once it may be again within that time.
    expect([at(660, {}, { isReady: false }), at(661, {}, { isReady: false })]).to.deep.equal(["-", "failed gate"]);
    expect(at(1160, { web: true, db: true }, { isReady: false })).to.equal("-");
    expect(next("verifying", { spec: gates(500), report, view: on({ isReady: false }), age: 101 })).to.equal(
      "failed gate",
    );
  });

  it("gives the bastion the drain's time to let work come back", () => {
    const spec = {
      drain: { enabled: true, timeoutSeconds: 900, after: { command: "undrain" } },
      timeouts: { verifySeconds: 100 },
    };
    const row = { drained: true, asked: true };
    expect(next("verifying", { spec, report, row, view: on({}), age: 1060 })).to.equal("-");
    expect(next("verifying", { spec, report, row, view: on({}), age: 1061 })).to.equal("failed drain");
  });

  it("fails as a drain when work cannot come back", () => {
    const spec = { drain: { enabled: true, after: { command: "undrain" } } };
    const answers = new Map([["n1/undrain", { epoch: 2, owner: "c1", generation: 1, seq: 5, ok: false }]]);
    expect(next("verifying", { spec, report, row: { drained: true }, view: { ...on({}), answers } })).to.equal(
      "failed drain",
    );
  });
});

describe("a node that goes back", () => {
  it("is back when it says so of this very order", () => {
    expect(next("rolling_back", { report: { state: "rolled_back" } })).to.equal("rolled_back");
    expect(next("rolling_back", { report: { state: "rolled_back", fence: earlier } })).to.equal("-");
    expect(next("rolling_back", { report: { state: "rolling_back" } })).to.equal("-");
  });

  it("fails when it cannot, or does not say", () => {
    const spec = { timeouts: { activateSeconds: 10 } };
    expect(next("rolling_back", { report: failed })).to.equal("failed rollback");
    expect(next("rolling_back", { spec, age: 70 })).to.equal("-");
    expect(next("rolling_back", { spec, age: 71 })).to.equal("failed rollback");
    // What was booted may have to be booted back.
    const booted = { state: "rolling_back", needsReboot: true } as const;
    const slow = { timeouts: { activateSeconds: 10, rebootSeconds: 100 } };
    expect(next("rolling_back", { spec: slow, report: booted, age: 160 })).to.equal("-");
    expect(next("rolling_back", { spec: slow, report: booted, age: 161 })).to.equal("failed rollback");
    const quick = { timeouts: { activateSeconds: 100, rebootSeconds: 10 } };
    expect(next("rolling_back", { spec: quick, report: booted, age: 160 })).to.equal("-");
  });
});

describe("a node at rest", () => {
  const rest = ["preflight", "pending", "succeeded", "failed", "rolled_back", "cancelled"] as const;
  const follows = (report: Partial<Report>): string => rest.map((phase) => next(phase, { report })).join(" ");

  it("stays so while it says nothing to this owner, or speaks of another manifest", () => {
    for (const phase of rest) {
      expect(next(phase, {}), phase).to.equal("-");
      for (const other of [{ epoch: 1 }, { owner: "c2" }, { generation: 2 }, { name: "v" }]) {
        const report = { state: "activating" as const, fence: { ...earlier, ...other } };
        expect(next(phase, { report }), phase).to.equal("-");
      }
    }
  });

  it("is asked again when another owner has brought it elsewhere", () => {
    const follow = (report: Partial<Report>): string => follows({ ...report, fence: { ...earlier, owner: "c9" } });
    expect(follow({ state: "activated", present: target })).to.equal("- - - - preflight preflight");
    expect(follow({ state: "rolled_back" })).to.equal("- - preflight - - -");
    expect(follow({ state: "fenced" })).to.equal("- - - - - -");
  });

  it("waits for its turn when it knows its owner, and has succeeded when it has the target already", () => {
    expect(follows({ state: "fenced" })).to.equal("pending - - - - -");
    expect(follows({ state: "fenced", present: target })).to.equal("succeeded succeeded - - - -");
    const { id, version } = target;
    const tried = { state: "fenced", present: { id, version } } as const;
    expect(follows(tried), "what it only tries is to be made to last").to.equal("pending - - - - -");
    expect(next("pending", { report: tried, spec: { activation: { mode: "test" } } })).to.equal("succeeded");
    expect(follows({ state: "preparing" })).to.equal("pending - - - - -");
    expect(follows({ state: "prepared" })).to.equal("pending - - - - -");
  });

  it("goes on with what a former owner began", () => {
    for (const state of ["activating", "rebooting", "activated"] as const)
      expect(follows({ state }), state).to.equal("activating activating - - - activating");
    expect(follows({ state: "rolling_back" })).to.equal("rolling_back rolling_back rolling_back - - rolling_back");
    expect(follows({ state: "rolled_back" })).to.equal("rolled_back rolled_back rolled_back rolled_back - rolled_back");
    expect(follows(failed)).to.equal("failed service failed service failed service - - -");
  });
});
