import { omitUndefined } from "#base/omit-undefined.ts";
import { quote } from "#base/quote.ts";
import type { UnresolvedStep } from "#engine/states/planned-step.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { NodeLimit } from "./node-limit.ts";
import { ALL_NODES, type PlannedStage, type RunPlan, type StageScope } from "./plan.ts";
import type { RunPart } from "./run-types.ts";

/** The work on one node that is left out. */
class NodeRest {
  /** Titles of left-out steps, by id. */
  readonly titles = new Map<string, string>();
  /** By name, the left-out step that registers it; undefined for a step that stays. */
  readonly registers = new Map<string, string | undefined>();
  /** The ids of the left-out steps that watch a step, by its id. */
  readonly watchers = new Map<string, string[]>();
}

/**
 * Leaves the work out of a plan that the operator did not choose. It sees every step of the whole plan once: step ids, and with them owed
 * reactions, are those of a whole run.
 */
export class ChosenPart {
  readonly #part: RunPart;
  readonly #plan: RunPlan;
  readonly #limit: NodeLimit | undefined;
  readonly #problems = new Problems();
  readonly #names = new Set<string>();
  readonly #tags = new Set<string>();
  readonly #rests = new Map<string, NodeRest>();
  /** By stage, the nodes with chosen steps. */
  readonly #kept = new Map<PlannedStage, Set<string>>();
  /** By stage of the file, the titles of left-out steps. */
  readonly #left = new Map<string, Set<string>>();
  /** The order of the stage in which `from` is. */
  #begin: number | undefined;

  constructor(part: RunPart, plan: RunPlan, limit?: NodeLimit) {
    this.#part = part;
    this.#plan = plan;
    this.#limit = limit;
    this.#begin = plan.stages.find((stage) => isNamed(stage, [part.from ?? ""]))?.source.order;
    for (const { id, source } of plan.stages) {
      this.#names.add(source.id).add(id);
      for (const tag of source.tags) this.#tags.add(tag);
    }
  }

  /** Notes the steps of a stage on a node, in the order of the plan. */
  see(stage: PlannedStage, node: string, steps: readonly UnresolvedStep[]): void {
    if (stage.source.order < 0) return;
    const chosen = new Set(this.#chosen(stage, steps));
    if (chosen.size > 0) getOrAdd(this.#kept, stage, newSet).add(node);
    const { titles, registers, watchers } = getOrAdd(this.#rests, node, () => new NodeRest());
    for (const step of steps) {
      const { id, title, register, needs } = step;
      for (const name of namesOf(step)) this.#names.add(name);
      for (const tag of step.tags) this.#tags.add(tag);
      const isChosen = chosen.has(step);
      const registered = needs.steps.map((name) => registers.get(name) ?? "");
      const needed = [...step.require, ...step.watches, ...step.answers, ...registered];
      for (const other of isChosen ? needed.flatMap((one) => titles.get(one) ?? []) : [])
        this.#refuse(`“${title}” needs “${other}”`, other, step.at);
      if (register !== undefined) registers.set(register, isChosen ? undefined : id);
      if (isChosen) continue;
      titles.set(id, title);
      for (const watched of step.watches) getOrAdd(watchers, watched, (): string[] => []).push(id);
      getOrAdd(this.#left, stage.source.id, newSet).add(title);
    }
  }

  /** The plan without the work that was not chosen. @throws KcoreError PART_UNKNOWN, PART_INCOMPLETE, PART_EMPTY */
  narrow(): RunPlan {
    const { only = [], from, tags = [] } = this.#part;
    this.#refuseUnknown("is called", from === undefined ? only : [...only, from], this.#names);
    this.#refuseUnknown("has the tag", tags, this.#tags);
    this.#problems.throwIfAny();
    const plan = this.#plan;
    const kept = plan.stages.flatMap((stage) => this.#narrowed(stage) ?? []);
    const nodes = new Set(kept.flatMap((stage) => stage.nodes ?? []));
    const onFailure = onNodes(plan.onFailure ?? [], nodes);
    for (const stage of [...kept, ...onFailure]) this.#refuseMissing(stage, [...kept, ...onFailure]);
    this.#problems.throwIfAny();
    const by = partFlags(this.#part);
    if (kept.length === 0 || (nodes.size === 0 && this.#limit))
      throw new KcoreError({
        code: "PART_EMPTY",
        message: `${by} leaves nothing to do`,
        hint: "choose more of the run",
      });
    const ids = new Set(kept.map(({ source }) => source.id));
    const stages = [...plan.stages.map(({ source }) => source.id), ...(this.#limit?.stages.values() ?? [])];
    const taken = new Set([...plan.nodes, ...(this.#limit?.nodes ?? [])]);
    const leftOut = {
      by,
      stages: [...new Set(stages)].filter((id) => !ids.has(id)),
      steps: [...this.#left].flatMap(([id, titles]) => (ids.has(id) ? [...titles].map((one) => `${id}: ${one}`) : [])),
      nodes: [...plan.roster.nodes.keys()].filter((node) => taken.has(node) && !nodes.has(node)),
    };
    const isWhole = leftOut.stages.length + leftOut.steps.length + leftOut.nodes.length === 0;
    return {
      ...plan,
      nodes: plan.nodes.filter((node) => nodes.has(node)),
      stages: kept.map((stage) => ({ ...stage, onFailure: onNodes(stage.onFailure, nodes) })),
      onFailure,
      ...(!isWhole && { title: `${plan.title} (in part: ${by})`, leftOut }),
    };
  }

  /** The chosen steps of a stage. */
  #chosen(stage: PlannedStage, steps: readonly UnresolvedStep[]): readonly UnresolvedStep[] {
    const { only, tags } = this.#part;
    const begin = this.#firstOf(stage, steps);
    return steps.filter(
      (step, index) =>
        index >= begin &&
        (!only || isNamed(stage, only) || namesOf(step).some((name) => only.includes(name))) &&
        (!tags || [...stage.source.tags, ...step.tags].some((tag) => tags.includes(tag))),
    );
  }

  /** The index of the first step of a stage that `from` leaves. */
  #firstOf(stage: PlannedStage, steps: readonly UnresolvedStep[]): number {
    const { from } = this.#part;
    const { order } = stage.source;
    if (from === undefined || isNamed(stage, [from]) || order > (this.#begin ?? Infinity)) return 0;
    const first = order < (this.#begin ?? 0) ? -1 : steps.findIndex((step) => namesOf(step).includes(from));
    if (first < 0) return steps.length;
    this.#begin = order;
    return first;
  }

  /** A stage with its chosen steps and the nodes that have some; undefined if it is left out. */
  #narrowed(stage: PlannedStage): PlannedStage | undefined {
    const { task, source } = stage;
    const { only, from, tags } = this.#part;
    const isChosen =
      (from === undefined || isNamed(stage, [from]) || source.order > (this.#begin ?? Infinity)) &&
      (!only || isNamed(stage, only)) &&
      (!tags || source.tags.some((tag) => tags.includes(tag)));
    if (task.kind !== "apply") return isChosen ? stage : undefined;
    const nodes = isChosen ? stage.nodes : stage.nodes?.filter((node) => this.#kept.get(stage)?.has(node));
    if (!nodes?.[0]) return undefined;
    const expand = async (late: StageScope): Promise<readonly UnresolvedStep[]> => {
      const watchers = this.#rests.get(late.node?.name ?? "")?.watchers;
      return this.#chosen(stage, await task.expand(late)).map((step) => {
        const alsoOwes = watchers?.get(step.id);
        return alsoOwes ? { ...step, alsoOwes } : step;
      });
    };
    return { ...stage, nodes, task: { ...task, expand } };
  }

  /** Refuses a stage that takes the outputs of a stage, or of one of its nodes, that is left out. */
  #refuseMissing({ dependencies, others, title, at }: PlannedStage, kept: readonly PlannedStage[]): void {
    for (const name of dependencies) {
      const giver = this.#plan.stages.find(({ register }) => register === name)?.source.id;
      const source = giver ?? this.#limit?.stages.get(name);
      const givers = kept.filter(({ register }) => register === name);
      const named = [...(others?.get(name) ?? [])].filter((node) => node !== "" && node !== ALL_NODES);
      const lost = named.filter((node) => !givers.some(({ nodes }) => nodes?.includes(node)));
      if (source === undefined || (givers.length > 0 && lost.length === 0)) continue;
      const where = lost.length === 0 ? "" : ` on ${lost.join(", ")}`;
      this.#refuse(`stage “${title}” needs the outputs of stage “${source}”${where}`, source, at);
    }
  }

  #refuse(need: string, name: string, at?: SourcePosition): void {
    const hint = this.#part.only ? `add --only ${quote(name)}` : `choose “${name}”, too`;
    const by = partFlags(this.#part);
    this.#problems.add({ code: "PART_INCOMPLETE", message: `${need}, which ${by} leaves out`, at, hint });
  }

  #refuseUnknown(word: string, wanted: readonly string[], known: ReadonlySet<string>): void {
    for (const name of wanted)
      if (!known.has(name))
        this.#problems.add({
          code: "PART_UNKNOWN",
          message: `no step or stage of this run ${word} “${name}”`,
          hint: suggestHint(name, known, `there are: ${[...known].slice(0, 20).join(", ") || "none"}`),
        });
  }
}

/** The flags that choose a part of a run: `--only web --limit n1`. */
function partFlags({ only = [], from, tags, limit }: RunPart): string {
  const others = Object.entries(omitUndefined({ from, tags: tags?.join(","), limit }));
  const words = [...only.map((name) => ["only", name] as const), ...others];
  return words.map(([flag, value]) => `--${flag} ${quote(value)}`).join(" ");
}

const newSet = (): Set<string> => new Set();

function getOrAdd<Key, Value>(map: Map<Key, Value>, key: Key, make: () => Value): Value {
  const value = map.get(key) ?? make();
  map.set(key, value);
  return value;
}

function isNamed({ id, source }: PlannedStage, names: readonly string[]): boolean {
  return names.includes(source.id) || names.includes(id);
}

/** All names of a step: title, `STATE/TITLE` and id; those of an `each` also without the item. */
function namesOf({ id, title, state }: UnresolvedStep): readonly string[] {
  const names = [title, `${state}/${title}`, id];
  return [...names, ...names.map((name) => name.replace(/\[.*\]$/s, ""))];
}

/** The stages on these nodes alone, without those of which no node is left. */
function onNodes(stages: readonly PlannedStage[], nodes: ReadonlySet<string>): readonly PlannedStage[] {
  const narrowed = stages.map((stage) =>
    stage.nodes ? { ...stage, nodes: stage.nodes.filter((node) => nodes.has(node)) } : stage,
  );
  return narrowed.filter((stage) => stage.nodes?.length !== 0);
}
