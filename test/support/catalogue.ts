import { expect } from "chai";
import { stringify } from "yaml";
import { z } from "zod";
import type { Outcome, RunEvent } from "#engine/events/event.ts";
import { registry } from "#engine/modules/registry.ts";
import { defineModule, type StepFacts, type ModuleDefinition } from "#engine/step/define.ts";
import { sh } from "#engine/step/sh.ts";
import type { Lab, LabNode, LabOptions, NodeSpec } from "#lab/lab.ts";
import { contradictions, openBastion, labRoster, type Bastion } from "./deploy.ts";
import { ownLab } from "./own-lab.ts";
import type { Sample } from "./sample.ts";
import { SharedLine } from "./shared-line.ts";
import { contextOf, type StepRun, type StepRunOptions } from "./steps.ts";

/** The number of processes that a step starts on a node: in order, and with a change. */
export interface Cost {
  readonly unchanged: number;
  readonly changed: number;
}

export interface CatalogueOptions extends Pick<LabOptions, "packages"> {
  readonly nodes: readonly NodeSpec[];
  /** The samples of each node, in order. */
  readonly samples: Readonly<Record<string, readonly Sample[]>>;
}

/** Nodes of a lab, each with a state that has all its samples. */
export class Catalogue {
  readonly #lab: Lab;
  readonly #bastion: Bastion;
  readonly #nodes: ReadonlyMap<string, { readonly node: LabNode; readonly line: SharedLine }>;
  readonly #samples: CatalogueOptions["samples"];

  private constructor(
    lab: Lab,
    bastion: Bastion,
    nodes: ReadonlyMap<string, { readonly node: LabNode; readonly line: SharedLine }>,
    samples: CatalogueOptions["samples"],
  ) {
    this.#lab = lab;
    this.#bastion = bastion;
    this.#nodes = nodes;
    this.#samples = samples;
  }

  /** Starts the nodes, and runs the `before` of each sample. */
  static async open({ nodes, samples, ...options }: CatalogueOptions): Promise<Catalogue> {
    const lab = await ownLab(options);
    try {
      return await Catalogue.#openIn(lab, nodes, samples);
    } catch (error) {
      await lab.down();
      throw error;
    }
  }

  static async #openIn(lab: Lab, nodes: readonly NodeSpec[], samples: CatalogueOptions["samples"]): Promise<Catalogue> {
    const up = await lab.up(nodes);
    const states = Object.entries(samples).map(([name, all]) => [`states/${name}.yaml`, stateOf(all)] as const);
    const bastion = await openBastion({ "roster/lab.yaml": await labRoster(lab), ...Object.fromEntries(states) });
    const lines = new Map(up.map((node) => [node.name, { node, line: new SharedLine(node) }]));
    for (const [name, all] of Object.entries(samples))
      for (const { before } of all) if (before !== undefined) lines.get(name)?.line.shell(before);
    return new Catalogue(lab, bastion, lines, samples);
  }

  async close(): Promise<void> {
    for (const { line } of this.#nodes.values()) line.close();
    await this.#bastion.remove();
    await this.#lab.down();
  }

  /** The output of a command on a node; throws the command's output if it fails. */
  shell(name: string, command: string): string {
    return this.#of(name).line.shell(command);
  }

  /** Runs one step without the others. */
  async runAlone(
    name: string,
    { module, args }: Pick<Sample, "module" | "args">,
    options: StepRunOptions = {},
  ): Promise<StepRun> {
    const loaded = (await registry.get(module)?.()) as ModuleDefinition;
    const { node, line } = this.#of(name);
    const context = contextOf({ node: name, nodeId: node.id });
    return line.run(loaded, args, { stateDir: "/var/lib/kcore", ...options, context });
  }

  /** Expects that a run has the outcomes of its dry run, and that a second run changes nothing. */
  async expectConverges(name: string): Promise<void> {
    const plan = await this.#apply(name, "--dry-run");
    const run = await this.#apply(name);
    const checks = this.#all(name).flatMap(({ id, isCheck = false }) => (isCheck ? [id] : []));
    expect(othersThan("changed", run).filter(({ title }) => !checks.includes(title))).to.deep.equal([]);
    expect(contradictions(plan, run)).to.deep.equal([]);
    expect(othersThan("ok", await this.#apply(name))).to.deep.equal([]);
  }

  /** Lets each sample drift. Expects that the dry run names the changed facts, and that a run mends them. */
  async expectMendsDrift(name: string): Promise<void> {
    const drifted = this.#all(name).filter(isDrifting);
    for (const { drift } of drifted) this.shell(name, drift.by);
    const plan = await this.#apply(name, "--dry-run");
    for (const sample of drifted) {
      const have = await this.#differing(name, sample, plan);
      for (const [fact, value] of Object.entries(sample.drift.finds))
        expect(have[fact], `${sample.id}, ${fact} of ${JSON.stringify(have)}`).to.match(
          value instanceof RegExp ? value : new RegExp(`^${RegExp.escape(value)}$`),
        );
    }
    const ids = drifted.map(({ id }) => id);
    // A step may be unknown only behind another one that would change.
    const found = new Map(finished(plan).map(({ title, outcome }) => [title, outcome]));
    expect(ids.filter((id) => !found.has(id) || found.get(id) === "ok")).to.deep.equal([]);
    expect(ids).to.include.members([...found].flatMap(([id, outcome]) => (outcome === "would-change" ? [id] : [])));
    expect(contradictions(plan, await this.#apply(name))).to.deep.equal([]);
    expect(othersThan("ok", await this.#apply(name))).to.deep.equal([]);
  }

  /** The samples that start more processes than `costs` lists, in words; samples that only help are not counted. */
  async samplesAbove(
    name: string,
    samples: readonly Sample[],
    costs: ReadonlyMap<string, Cost>,
  ): Promise<readonly string[]> {
    const { line } = this.#of(name);
    const nothing = defineModule({
      name: "no.thing",
      summary: "Nothing.",
      args: z.strictObject({}),
      step: () => ({ want: { a: "b" }, probe: sh`fact a b`, quiet: true }),
    });
    const bare = await this.#least(name, () => line.run(nothing, {}), 0);
    const problems: string[] = [];
    for (const sample of samples.filter(({ helps = false }) => !helps)) {
      const { unchanged, changed } = costs.get(sample.id) ?? { unchanged: -1, changed: -1 };
      const run = (): Promise<unknown> => this.runAlone(name, sample);
      const still = (await this.#least(name, run, unchanged + bare)) - bare;
      if (still > unchanged) problems.push(`${sample.id}: ${still} unchanged, ${unchanged} listed`);
      if (!isDrifting(sample)) continue;
      const moving = (await this.#least(name, run, changed + bare, sample.drift.by)) - bare;
      if (moving > changed) problems.push(`${sample.id}: ${moving} changed, ${changed} listed`);
    }
    return problems;
  }

  /** The number of processes that `work` starts: the least of several tries, since other programs, such as the journal, start some too. */
  async #least(name: string, work: () => Promise<unknown>, limit: number, before = ":"): Promise<number> {
    // The newest process of the node's own namespace: pids are given in order (proc_loadavg(5)).
    const newest = (command: string): number =>
      Number(this.shell(name, `${command}\nread -r _ _ _ _ pid </proc/loadavg; echo $pid`).split("\n").at(-1));
    let found = Number.POSITIVE_INFINITY;
    for (let tries = 0; tries < 10 && found > limit; tries++) {
      const first = newest(before);
      await work();
      found = Math.min(found, newest(":") - first);
    }
    return found;
  }

  /** The facts of a sample that a dry run found different. If the sample is unknown, it is tried alone. */
  async #differing(name: string, sample: Sample, plan: readonly RunEvent[]): Promise<StepFacts> {
    const { outcome, changes = [] } = finished(plan).find(({ title }) => title === sample.id) ?? {};
    if (outcome === "unknown") return (await this.runAlone(name, sample, { dryRun: true })).have;
    return Object.fromEntries(changes.map(({ name: fact, have = "" }) => [fact, have]));
  }

  async #apply(name: string, ...flags: readonly string[]): Promise<readonly RunEvent[]> {
    const { stdout, stderr } = await this.#bastion.kcore(["state", "apply", name, "--on", name, ...flags], {
      timeout: 300_000,
    });
    const events = await this.#bastion.events();
    if (finished(events).length === 0) throw new Error(`no step was run:\n${stdout}${stderr}`);
    return events;
  }

  #all(name: string): readonly Sample[] {
    return this.#samples[name] ?? [];
  }

  #of(name: string): { readonly node: LabNode; readonly line: SharedLine } {
    const found = this.#nodes.get(name);
    if (!found) throw new Error(`the lab has no node ${name}`);
    return found;
  }
}

type Finished = Extract<RunEvent, { type: "step.finished" }>;

function finished(events: readonly RunEvent[]): readonly Finished[] {
  return events.filter((event) => event.type === "step.finished");
}

function stateOf(all: readonly Sample[]): string {
  return stringify({ steps: all.map(({ id, module, args, keys = {} }) => ({ id, [module]: args, ...keys })) });
}

function isDrifting(sample: Sample): sample is Sample & Required<Pick<Sample, "drift">> {
  return sample.drift !== undefined;
}

/** The steps with another outcome than `expected`, with their reasons. */
function othersThan(expected: Outcome, events: readonly RunEvent[]): readonly (object & { readonly title: string })[] {
  return finished(events)
    .filter(({ outcome }) => outcome !== expected)
    .map(({ title, outcome, problem, reason, changes }) => ({
      title,
      outcome,
      ...(problem && { problem: problem.message }),
      ...(reason !== undefined && { reason }),
      ...(changes && { changes }),
    }));
}
