import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { stringify } from "yaml";
import { z } from "zod";
import type { Outcome, RunEvent } from "#engine/events/event.ts";
import { registry } from "#engine/modules/registry.ts";
import { defineModule, type ModuleDefinition } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import { openLab, type Lab, type LabNode } from "#lab/lab.ts";
import { contradictions, on, openBastion, rosterOf, type Bastion } from "#support/deploy.ts";
import type { Sample } from "#support/sample.ts";
import { contextOf, runStepOn, stepOf, type StepRun, type StepRunOptions } from "#support/steps.ts";
import { samples as each } from "./catalogue/all.ts";
import { samples as many } from "./catalogue/many.ts";

const samples: readonly Sample[] = [...each, ...many];

type Finished = Extract<RunEvent, { type: "step.finished" }>;

function finished(events: readonly RunEvent[]): readonly Finished[] {
  return events.filter((event) => event.type === "step.finished");
}

function isDrifting(sample: Sample): sample is Sample & Required<Pick<Sample, "drift">> {
  return sample.drift !== undefined;
}

/** What docs/performance.md says that a step of each sample starts on a node, where it is in order and where it changes. */
const page = readFileSync(join(import.meta.dirname, "../../docs/performance.md"), "utf8");
const costs = new Map(
  Array.from(
    page.matchAll(/^\| ([a-z_]+\.[\w ]+?) +\| +(\d+) +\| +(\d+|-) +\|/gm),
    ([, id = "", unchanged, changed]) => [id, { unchanged: Number(unchanged), changed: Number(changed) }],
  ),
);

/** Titles of the steps with another outcome than this one, and why. */
function othersThan(outcome: Outcome, events: readonly RunEvent[]): readonly string[] {
  return finished(events)
    .filter((event) => event.outcome !== outcome)
    .map(({ title, outcome: other, problem, reason, changes }) =>
      JSON.stringify({ title, other, problem: problem?.message, reason, changes }),
    );
}

describe("the catalogue of modules", function () {
  this.timeout(600_000);
  let lab: Lab;
  let bastion: Bastion;
  const nodes = new Map<string, LabNode>();

  before(async () => {
    lab = await openLab({ name: "catalogue" });
    await lab.down();
    const up = await lab.up([
      { name: "n1", kind: "debian", disks: ["128M"] },
      { name: "b1", kind: "busybox", disks: [] },
    ]);
    for (const node of up) nodes.set(node.name, node);
    bastion = await openBastion({
      "roster/lab.yaml": await rosterOf(lab),
      "states/all.yaml": stateOf(samples),
      "states/busybox.yaml": stateOf(samples.filter(({ busybox }) => busybox === "converges")),
    });
    for (const { before: text } of samples) if (text !== undefined) await on(nodeOf("n1"), text);
    for (const { before: text, busybox } of samples)
      if (text !== undefined && busybox === "converges") await on(nodeOf("b1"), text);
  });
  after(async () => {
    await bastion?.remove();
    await lab.down();
  });

  function stateOf(all: readonly Sample[]): string {
    return stringify({ steps: all.map(({ id, module, args, keys = {} }) => ({ id, [module]: args, ...keys })) });
  }

  function nodeOf(name: string): LabNode {
    return nodes.get(name) as LabNode;
  }

  async function apply(state: string, node: string, ...flags: readonly string[]): Promise<readonly RunEvent[]> {
    await bastion.kcore(["state", "apply", state, "--on", node, ...flags], { timeout: 300_000 });
    return bastion.events();
  }

  async function runAlone(
    name: string,
    { module, args }: Pick<Sample, "module" | "args">,
    options: StepRunOptions = {},
  ): Promise<StepRun> {
    const loaded = (await registry.get(module)?.()) as ModuleDefinition;
    const node = nodeOf(name);
    const step = stepOf(loaded, args, contextOf({ node: name, nodeId: node.id }));
    return runStepOn(`ssh:ssh ${node.sshArguments().join(" ")}`, step, options);
  }

  it("is a state of a hundred steps", () => {
    expect(samples.length).to.be.at.least(100);
  });

  for (const [state, node] of [
    ["all", "n1"],
    ["busybox", "b1"],
  ] as const) {
    it(`converges on ${node} as the dry run says, and changes nothing the second time`, async () => {
      const plan = await apply(state, node, "--dry-run");
      const run = await apply(state, node);
      const checks = samples.filter(({ isCheck }) => isCheck).map(({ id }) => id);
      expect(
        othersThan("changed", run).filter((text) => !checks.includes((JSON.parse(text) as Finished).title)),
      ).to.deep.equal([]);
      expect(contradictions(plan, run)).to.deep.equal([]);
      expect(othersThan("ok", await apply(state, node))).to.deep.equal([]);
    });

    it(`names on ${node} what somebody changed, and mends it`, async () => {
      const drifted = samples.filter(isDrifting).filter(({ busybox }) => state === "all" || busybox === "converges");
      for (const sample of drifted) {
        await on(nodeOf(node), sample.drift.by);
        const finds = Object.entries(sample.drift.finds);
        const { have }: Pick<StepRun, "have"> =
          finds.length === 0 ? { have: {} } : await runAlone(node, sample, { dryRun: true });
        for (const [name, value] of finds)
          expect(have[name], `${sample.id}, ${name} of ${JSON.stringify(have)}`).to.match(
            value instanceof RegExp ? value : new RegExp(`^${RegExp.escape(value)}$`),
          );
      }
      const plan = await apply(state, node, "--dry-run");
      // What stands on another step that would change may be unknown; nothing else may.
      const silent = drifted.filter(
        ({ id }) => !finished(plan).some(({ title, outcome }) => title === id && outcome !== "ok"),
      );
      expect(silent.map(({ id }) => id)).to.deep.equal([]);
      const moved = finished(plan).filter(({ outcome }) => outcome === "would-change");
      expect(drifted.map(({ id }) => id)).to.include.members(moved.map(({ title }) => title));
      const run = await apply(state, node);
      expect(contradictions(plan, run)).to.deep.equal([]);
      expect(othersThan("ok", await apply(state, node))).to.deep.equal([]);
    });
  }

  it("starts no more processes on n1 than docs/performance.md says", async () => {
    const node = nodeOf("n1");
    /** The newest process of the node's own namespace: numbers are given one after the other (proc_loadavg(5)). */
    const newest = async (): Promise<number> => Number(await on(node, "read -r _ _ _ _ pid </proc/loadavg; echo $pid"));
    const started = async (work: () => Promise<unknown>): Promise<number> => {
      const before = await newest();
      await work();
      return (await newest()) - before;
    };
    const nothing = defineModule({
      name: "no.thing",
      summary: "Nothing.",
      args: z.strictObject({}),
      step: () => ({ want: { a: "b" }, probe: sh`fact a b`, quiet: true }),
    });
    const empty = (): Promise<unknown> =>
      runStepOn(`ssh:ssh ${node.sshArguments().join(" ")}`, nothing.step({}, contextOf()));
    const least = async (
      work: () => Promise<unknown>,
      limit: number,
      before: () => Promise<unknown> = () => Promise.resolve(),
    ): Promise<number> => {
      let found = Number.POSITIVE_INFINITY;
      // Others on the node, such as its journal, start some now and then.
      for (let tries = 0; tries < 4 && found > limit; tries++) {
        await before();
        found = Math.min(found, await started(work));
      }
      return found;
    };
    const bare = await least(empty, 0);
    const problems: string[] = [];
    for (const sample of each) {
      const { unchanged, changed } = costs.get(sample.id) ?? { unchanged: -1, changed: -1 };
      const still = (await least(() => runAlone("n1", sample), unchanged + bare)) - bare;
      if (still > unchanged) problems.push(`${sample.id}: ${still} unchanged, ${unchanged} listed`);
      if (!isDrifting(sample)) continue;
      const drift = (): Promise<unknown> => on(node, sample.drift.by);
      const moving = (await least(() => runAlone("n1", sample), changed + bare, drift)) - bare;
      if (moving > changed) problems.push(`${sample.id}: ${moving} changed, ${changed} listed`);
    }
    expect(problems).to.deep.equal([]);
  });

  for (const { id, module, refusal } of samples)
    if (refusal)
      it(`${id} refuses with ${refusal.code}`, async () => {
        if (refusal.before !== undefined) await on(nodeOf("n1"), refusal.before);
        const refused = await runAlone("n1", { module, args: refusal.args });
        if (refusal.after !== undefined) await on(nodeOf("n1"), refusal.after);
        expect(refused.problem?.code, JSON.stringify(refused)).to.equal(refusal.code);
      });

  for (const { id, module, args, busybox } of each)
    if (busybox !== "converges")
      it(`${id} says on a BusyBox node that ${busybox.forWantOf} is missing`, async () => {
        const { problem, ...rest } = await runAlone("b1", { module, args });
        expect(problem?.code, JSON.stringify(rest)).to.equal(busybox.refuses);
        expect(problem?.message).to.contain(busybox.forWantOf);
      });
});
