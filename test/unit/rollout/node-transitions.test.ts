import { expect } from "chai";
import { nextAssignment } from "#rollout/node-transitions.ts";
import { fenceOf } from "#rollout/order.ts";
import { Report, type NodePhase, type NodeAssignment } from "#rollout/records.ts";
import type { RolloutNode, RolloutInput } from "#rollout/rollout-input.ts";
import { casesOf } from "#support/cases/read.ts";
import { aNode, aSpec, old, SteppedRollout } from "#support/stepped-rollout.ts";

const now = 50_000_000;

interface Case {
  readonly row?: Partial<NodeAssignment>;
  /** Undefined: the node did not report to this owner. */
  readonly report?: Partial<Report> | undefined;
  readonly spec?: object;
  readonly view?: Partial<RolloutInput>;
  /** Seconds since the phase began. */
  readonly age?: number;
}

/** The next phase of a row, with the failure's kind or “asked”; `-` for no change. */
function next(phase: NodePhase, { row: more = {}, report, spec = {}, view: around = {}, age = 0 }: Case): string {
  const row: NodeAssignment = { epoch: 2, owner: "c1", generation: 1, seq: 5, phase, since: now - age * 1000, ...more };
  const { view } = new SteppedRollout({ nodes: ["n1"] });
  const fence = fenceOf("u", row);
  const full = report && { epoch: 1, fence, state: "fenced" as const, present: old, at: now, ...report };
  const became = nextAssignment(
    {
      ...view,
      spec: aSpec(spec),
      owner: { epoch: 2, owner: "c1" },
      now,
      reports: new Map(full ? [["n1", full]] : []),
      ...around,
    },
    "n1",
    row,
  );
  if (!became) return "-";
  const isSame = became.phase === "rebooting" || became.phase === phase;
  expect(became.seq, "each phase has an order of its own").to.equal(isSame ? 5 : 6);
  if (became.phase !== phase) expect(became).to.not.have.property("asked");
  if (became.failure) return `${became.phase} ${became.failure.kind}`;
  return became.asked === true ? `${became.phase} asked` : became.phase;
}

interface Word extends Omit<Case, "age"> {
  readonly answers?: Readonly<Record<string, boolean>>;
  readonly node?: Partial<RolloutNode>;
}
const { words, cases } = casesOf<{
  readonly words: Readonly<Record<string, Word>>;
  readonly cases: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, string>>>>>>;
}>("rollout-rows.yaml");

const rest = ["preflight", "pending", "succeeded", "failed", "rolled_back", "cancelled"] as const;

/** The next phase of the row that a key of the table describes; `rest` stands for each phase at rest. */
function outcomeOf(key: string): string {
  const [phase = "", ...given] = key.split(" ");
  if (phase === "rest") return rest.map((one) => outcomeOf([one, ...given].join(" "))).join(" ");
  const meant = given.map((word): Word & Pick<Case, "age"> => {
    if (/^\d+$/.test(word)) return { age: Number(word) };
    const known = words[word];
    return known ?? { report: { state: Report.shape.state.parse(word) } };
  });
  const all = <Field extends keyof Word>(field: Field): object =>
    Object.assign({}, ...meant.map((one) => one[field])) as object;
  const isSaid = meant.some(({ report }) => report);
  const answers = Object.entries(all("answers") as Record<string, boolean>).map(
    ([hook, ok]) => [`n1/${hook}`, { epoch: 2, owner: "c1", generation: 1, seq: 5, ok }] as const,
  );
  const { nodes, ...view } = all("view") as Partial<RolloutInput>;
  const node = meant.some(({ node: one }) => one) && new Map([["n1", aNode("n1", all("node"))]]);
  return next(phase as NodePhase, {
    row: all("row"),
    spec: all("spec"),
    report: isSaid ? all("report") : undefined,
    age: meant.find(({ age }) => age !== undefined)?.age ?? 0,
    view: { ...view, answers: new Map(answers), ...(nodes ? { nodes: new Map() } : node && { nodes: node }) },
  });
}

for (const [group, tests] of Object.entries(cases))
  describe(group, () => {
    for (const [name, rows] of Object.entries(tests))
      it(name, () => {
        for (const [key, wanted] of Object.entries(rows)) expect(outcomeOf(key), key).to.equal(wanted);
      });
  });
