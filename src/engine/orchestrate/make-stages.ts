import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { attemptKnown, UnknownValue } from "#engine/expressions/unknown.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { bindParams, type GivenParam } from "#engine/params/bind-params.ts";
import { contextWithin, type BindContext } from "./bind-context.ts";
import { bindStage, isEmptyTarget, itemsIn, nodesOf, paceOf, stageItems, type StageInstance } from "./bind-stage.ts";
import { resolveTargets } from "./given-params.ts";
import type { Orchestration } from "./load-orchestration.ts";
import { batchesOf, wavesOf, type Pace, type PlannedStage, type RunPlan } from "./plan.ts";
import type { StageSource } from "./stage-source.ts";
import { UsedNames } from "./used-names.ts";

/** A group of the target's nodes that goes through all stages before the next group. */
interface Wave {
  readonly nodes: readonly string[];
  readonly pace: Pace;
  /** `2 of 3: n2`; absent if there is just one wave. */
  readonly label?: string;
}

/** A stage's context in a wave, and its nodes there. */
interface StagePlace {
  readonly context: BindContext;
  readonly nodes?: readonly string[];
}

/** The inputs from which the stages of a run are made. */
interface StageInput extends Pick<BindContext, "roster" | "catalogue" | "skipHealth" | "batch" | "limit" | "problems"> {
  readonly given: ReadonlyMap<string, GivenParam>;
  readonly run: Readonly<Record<string, unknown>>;
  /** The place of a target parameter's value, for problems. */
  readonly placeOf?: (param: string) => SourcePosition | undefined;
}

/** Binds an orchestration's parameters and makes the stages of a run. @throws KcoreError with every problem of the parameters */
export async function makeStages(
  orchestration: Orchestration,
  { given, run, placeOf, ...shared }: StageInput,
): Promise<Required<Pick<RunPlan, "stages" | "onFailure">>> {
  const { name, params: declared, target } = orchestration;
  const { roster, catalogue } = shared;
  const scope: Scope = { nodes: roster.nodes, run };
  const owner = `the orchestration “${name}”`;
  const bound = await bindParams(declared, given, { owner, scope, readSecret: catalogue.readSecret });
  const resolved = resolveTargets(declared, bound, roster, placeOf);
  const named = target && resolved[target.name];
  const targets = typeof named === "string" ? named.split(",") : [];
  const nodes = shared.limit?.within(targets) ?? targets;
  // A target without a node is an error: where none is left, the stages lose their nodes instead.
  const narrowed = nodes.length > 0 && target && { [target.name]: nodes.join(",") };
  const params: unknown = Object.assign(Object.create(null), resolved, narrowed);
  const context = { ...shared, scope: { ...scope, params }, conditions: [], usedNames: new UsedNames() };
  return new StageMaker(orchestration, context, nodes).make();
}

/** Makes the stages of a run from the stages of the file, once for each wave: the target parameter then names the wave's nodes alone. */
class StageMaker {
  readonly #orchestration: Orchestration;
  readonly #context: BindContext;
  readonly #targets: readonly string[];
  readonly #count = new Map<string, number>();
  readonly #made: PlannedStage[] = [];

  /** `targets`: the nodes of the one target parameter; empty without one. */
  constructor(orchestration: Orchestration, context: BindContext, targets: readonly string[]) {
    this.#orchestration = orchestration;
    this.#context = context;
    this.#targets = targets;
  }

  async make(): Promise<Required<Pick<RunPlan, "stages" | "onFailure">>> {
    const { stages, onFailure } = this.#orchestration;
    const isOnce = ({ once, afterEach }: StageSource): boolean => once || afterEach;
    const first = stages.findIndex((stage) => !isOnce(stage));
    const last = stages.findLastIndex((stage) => !isOnce(stage));
    const [before, body, after] =
      first === -1 ? [stages, [], []] : [stages.slice(0, first), stages.slice(first, last + 1), stages.slice(last + 1)];
    this.#refuseMisplaced(body, after);
    const allNodes: Wave = { nodes: this.#targets, pace: {} };
    for (const stage of before) await this.#add(stage, allNodes);
    const waves = await this.#waves();
    for (const wave of waves) {
      for (const stage of body) await this.#add(stage, wave);
      for (const stage of before) if (stage.afterEach) await this.#add(stage, wave, true);
    }
    for (const stage of after) await this.#add(stage, allNodes);
    const made = this.#made.splice(0);
    for (const stage of onFailure) if (stage.once) await this.#add(stage, allNodes);
    for (const wave of waves.toReversed()) for (const stage of onFailure) if (!stage.once) await this.#add(stage, wave);
    return { stages: made, onFailure: this.#made };
  }

  #refuseMisplaced(body: readonly StageSource[], after: readonly StageSource[]): void {
    for (const { id, once, afterEach, at } of [
      ...body.filter((stage) => stage.once),
      ...body.filter((stage) => stage.afterEach),
      ...after.filter((stage) => stage.afterEach),
    ])
      this.#context.problems.add({
        code: "STAGE_INVALID",
        message: `stage “${id}” has “${afterEach || !once ? "afterEach" : "once"}”, but stands among or after the stages of each wave`,
        at,
        hint: "move it before all of them, or (once) after all of them",
      });
  }

  async #waves(): Promise<readonly Wave[]> {
    const { waves } = this.#orchestration;
    const { problems } = this.#context;
    if (waves.length === 0) return [{ nodes: this.#targets, pace: {} }];
    const found: { readonly nodes: readonly string[]; readonly pace: Pace }[] = [];
    for (const { on, node, forEach, within } of waves) {
      const outer = await problems.attemptAsync(() => contextWithin(within, this.#context));
      if (outer === undefined) return [];
      const items = forEach ? (problems.attempt(() => itemsIn(forEach, outer.scope)) ?? []) : [undefined];
      for (const item of items) {
        const context = { ...outer, scope: { ...outer.scope, ...(forEach && { item }) } };
        const nodes = this.#matchWave(() => nodesOf(on, context));
        const total = this.#targets.filter((name) => nodes.includes(name)).length;
        found.push({ nodes, pace: attemptKnown(() => paceOf(node, context.scope, total), problems) ?? {} });
      }
    }
    const { waves: groups, unclaimed } = wavesOf(
      this.#targets,
      found.map(({ nodes, pace: { batch } }) => ({ nodes, ...(batch !== undefined && { batch }) })),
    );
    if (unclaimed.length > 0)
      problems.add({
        code: "ORCHESTRATION_INVALID",
        message: `no wave takes ${unclaimed.join(", ")}`,
        at: waves[0]?.at,
        hint: 'end the waves with - { on: "*" }',
      });
    return groups.map((nodes, index) => {
      const { batch: _, ...pace } = found.find((wave) => wave.nodes.includes(nodes[0] ?? ""))?.pace ?? {};
      const label = `${index + 1} of ${groups.length}: ${shorten(nodes)}`;
      return { nodes, pace, ...(groups.length > 1 && { label }) };
    });
  }

  /** The nodes of a wave; a wave may be empty, since a cluster may have no node of a role yet. */
  #matchWave(match: () => readonly string[]): readonly string[] {
    const found = new Problems();
    const nodes = attemptKnown(match, found) ?? [];
    if (!isEmptyTarget(found.list)) this.#context.problems.add(...found.list);
    return nodes;
  }

  async #add(source: StageSource, wave: Wave, isRepeat = false): Promise<void> {
    const placed = await this.#place(source, this.#narrowed(wave));
    if (placed === undefined) return;
    const { nodes } = placed;
    const { problems, limit, batch } = placed.context;
    if (nodes?.length === 0) return void limit?.stages.set(source.register, source.id);
    for (const [id, title, context] of problems.attempt(() => stageItems(source, placed.context)) ?? []) {
      const instance = this.#instance({ id, title }, wave, nodes, isRepeat);
      const pace =
        nodes &&
        attemptKnown(
          () => ({ ...wave.pace, ...paceOf(source.node, context.scope, nodes.length, batch) }),
          context.problems,
        );
      const order = this.#orchestration.stages.indexOf(source);
      const stage = await bindStage(source, { ...instance, order, pace: pace ?? {} }, context);
      if (stage) this.#made.push(stage);
    }
  }

  /** A stage's context and nodes in a wave; undefined if the wave has no node for it, or there is a problem. */
  async #place(source: StageSource, narrowed: BindContext): Promise<StagePlace | undefined> {
    const { problems } = this.#context;
    try {
      return await placeIn(source, narrowed);
    } catch (error) {
      if (error instanceof UnknownValue) return undefined;
      if (!(error instanceof KcoreError)) throw error;
      // Another wave has the stage's nodes if its target is empty in this wave alone.
      const isNarrow = narrowed !== this.#context;
      const isElsewhere =
        isEmptyTarget(error.problems) &&
        isNarrow &&
        (await problems.attemptAsync(() => placeIn(source, this.#context))) !== undefined;
      if (!isElsewhere) problems.add(...error.problems);
      return undefined;
    }
  }

  #instance(
    { id, title }: Pick<StageSource, "id" | "title">,
    { label }: Wave,
    nodes: readonly string[] | undefined,
    isRepeat: boolean,
  ): Omit<StageInstance, "pace" | "order"> {
    const count = (this.#count.get(id) ?? 0) + 1;
    this.#count.set(id, count);
    const where = [...(isRepeat ? ["again"] : []), ...(label === undefined ? [] : [label])].join(", ");
    return {
      id: count === 1 ? id : `${id}@${count}`,
      title: where === "" ? title : `${title} (${where})`,
      ...(nodes && { nodes }),
    };
  }

  #narrowed({ nodes }: Wave): BindContext {
    const { target } = this.#orchestration;
    const { scope } = this.#context;
    if (target === undefined || nodes.length === this.#targets.length) return this.#context;
    const params = { ...(scope["params"] as Record<string, unknown>), [target.name]: nodes.join(",") };
    return { ...this.#context, scope: { ...scope, params } };
  }
}

/** A stage's context and nodes inside an outer context. @throws KcoreError with every problem; TARGET_EMPTY */
async function placeIn({ within, on, order }: StageSource, outer: BindContext): Promise<StagePlace> {
  const context = await contextWithin(within, outer);
  if (!on) return { context };
  const nodes = inOrder(nodesOf(on, context), order);
  return { context, nodes: context.limit?.within(nodes) ?? nodes };
}

function inOrder(nodes: readonly string[], order: StageSource["order"]): readonly string[] {
  if (order === "file") return nodes;
  return order === "reverse" ? nodes.toReversed() : nodes.toSorted();
}

function shorten(nodes: readonly string[]): string {
  const [shown = []] = batchesOf(nodes, 3);
  return nodes.length > 3 ? `${shown.join(", ")} and ${nodes.length - 3} more` : shown.join(", ");
}
