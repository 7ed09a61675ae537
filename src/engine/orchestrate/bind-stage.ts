import { z } from "zod";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { Duration } from "#engine/step/fields.ts";
import { matchTargets } from "#engine/roster/targets.ts";
import { evaluate, evaluateBoolean } from "#engine/expressions/evaluate.ts";
import { withUntrusted } from "#engine/expressions/untrusted-names.ts";
import { attemptKnown, Unknown, UnknownValue, type Members } from "#engine/expressions/unknown.ts";
import { conditionText, type SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Pace, PlannedStage, StageScope } from "./plan.ts";
import { ALL_NODES, shareOf } from "./plan.ts";
import { dependenciesOf, othersOf } from "./check-references.ts";
import { bindApply } from "./bind-apply.ts";
import { bindRun } from "./bind-run.ts";
import type { BindContext } from "./bind-context.ts";
import type { StageSource } from "./stage-source.ts";

/** The action that `--skip-health` leaves out. */
const HEALTH_ACTION = "cluster.health";

const Share = z.union([
  z.number().int().min(1),
  z.string().regex(/^\d{1,3}%$/, "must be a number of nodes, or a share such as 25%"),
]);
/** The schemas of the keys that set the pace of a stage or wave. */
export const paceKeys = {
  batch: Share,
  concurrency: z.number().int().min(1),
  maxUnavailable: Share,
  maxFailures: z.union([
    z.number().int().min(0),
    z.string().regex(/^\d{1,3}%$/, "must be a number or a share such as 25%"),
  ]),
};

/** The pace of a stage or wave; shares are of `total` nodes. `given`: the operator's batch, which counts more. @throws KcoreError */
export function paceOf(node: SourceMap, scope: Scope, total: number, given?: number | string): Pace {
  const batch = given ?? readKey(node, "batch", paceKeys.batch, scope);
  const concurrency = readKey(node, "concurrency", paceKeys.concurrency, scope);
  const maxFailures = readKey(node, "maxFailures", paceKeys.maxFailures, scope);
  const maxUnavailable = readKey(node, "maxUnavailable", paceKeys.maxUnavailable, scope);
  return {
    ...(batch !== undefined && { batch: Math.max(1, shareOf(batch, total)) }),
    ...omitUndefined({ concurrency }),
    ...(maxFailures !== undefined && { maxFailures: shareOf(maxFailures, total) }),
    ...(maxUnavailable !== undefined && { maxUnavailable: Math.max(1, shareOf(maxUnavailable, total)) }),
  };
}

/** The value of a key that may be an expression over values known before the run. */
export function readKey<Schema extends z.ZodType>(
  map: SourceMap,
  key: string,
  schema: Schema,
  scope: Scope,
): z.output<Schema> | undefined {
  const node = map.get(key);
  return node === undefined ? undefined : validateValue(evaluate(node, scope), node, schema);
}

const TargetValue = z.union([z.string().min(1), z.array(z.string().min(1)).min(1)]);

/** The nodes that an `on` or `each` names, in the roster's order. @throws KcoreError TARGET_EMPTY … */
export function nodesOf(on: SourceNode, { roster, scope }: Pick<BindContext, "roster" | "scope">): readonly string[] {
  const value = validateValue(evaluate(on, scope), on, TargetValue);
  return matchTargets(value, roster, textAt(on)).map(({ name }) => name);
}

/** The place of a scalar's first character, behind its quote. */
function textAt(node: SourceNode): SourcePosition {
  const isQuoted = node.kind === "scalar" && (node.style === "single" || node.style === "double");
  return isQuoted ? { ...node.at, column: node.at.column + 1 } : node.at;
}

/** Id, title and context of a stage for each item of its `forEach`; without `forEach`, once. */
export function stageItems(source: StageSource, context: BindContext): readonly [string, string, BindContext][] {
  const { id, title, forEach } = source;
  const written = source.node.get("title");
  const items = forEach === undefined ? [undefined] : itemsIn(forEach, context.scope);
  return items.map((item, index) => {
    const scope = { ...context.scope, ...(forEach && { item }) };
    const shown = written && attemptKnown(() => String(evaluate(written, scope)), context.problems);
    return [index === 0 ? id : `${id}-${index + 1}`, shown ?? title, { ...context, scope }];
  });
}

/** The items of a list; one Unknown item where a check leaves the list open. */
export function itemsIn(list: SourceNode, scope: Scope): readonly unknown[] {
  try {
    return validateValue(evaluate(list, scope), list, z.array(z.unknown()));
  } catch (error) {
    if (error instanceof UnknownValue) return [error.unknown];
    throw error;
  }
}

/** One instance of a stage of the file in this run: the instance of a wave or of an item. */
export interface StageInstance {
  readonly id: string;
  readonly title: string;
  /** See `StageName`. */
  readonly order: number;
  readonly nodes?: readonly string[];
  readonly pace: Pace;
}

/** Binds a stage to its nodes and values; undefined, with its problems added, if the stage has no valid task. */
export async function bindStage(
  source: StageSource,
  { order, ...instance }: StageInstance,
  context: BindContext,
): Promise<PlannedStage | undefined> {
  const { problems, scope } = context;
  const { work, when, at } = source;
  const dependencies = problems.attempt(() => dependenciesOf(source)) ?? new Set<string>();
  // A stage without nodes sees the values of all nodes by their names anyway.
  const named = instance.nodes ? context.roster.nodes : new Map<string, never>();
  const others = problems.attempt(() => othersOf(source, named)) ?? new Map<string, never>();
  const scopeOf = (late: StageScope, outer = scope): Scope => scopeWith(outer, withOthers(late, others));
  const task =
    work.kind === "apply" ? bindApply(work, instance.id, context, scopeOf) : await bindRun(work, context, scopeOf);
  const conditions = [...context.conditions, ...(when ? [{ node: when, scope }] : [])];
  const timeout = attemptKnown(() => readKey(source.node, "timeout", Duration, scope), problems);
  const onFailure = await bindOnFailure(source, instance, { ...context, conditions: [] });
  if (task === undefined) return undefined;
  const skip = work.kind === "run" && work.action === HEALTH_ACTION && context.skipHealth ? "--skip-health" : undefined;
  return {
    ...instance,
    source: { id: source.id, order, tags: source.tags },
    register: source.register,
    at,
    ...omitUndefined({ timeout, skip }),
    ...(source.reconnect && { reconnect: true }),
    ...(work.kind === "run" && work.check && { check: work.check }),
    dependencies,
    ...(others.size > 0 && { others }),
    ...(conditions.length > 0 && {
      when: (late: StageScope) =>
        conditions.every(({ node, scope: outer }) => evaluateBoolean(node, scopeOf(late, outer))),
      condition: conditions.map(({ node }) => conditionText(node)).join(" and "),
    }),
    task,
    onFailure,
  };
}

async function bindOnFailure(
  { onFailure }: StageSource,
  { id, nodes }: Pick<StageInstance, "id" | "nodes">,
  outer: BindContext,
): Promise<readonly PlannedStage[]> {
  const bound: PlannedStage[] = [];
  const { problems } = outer;
  for (const source of onFailure)
    for (const [itemId, title, context] of problems.attempt(() => stageItems(source, outer)) ?? []) {
      const matched = source.on && attemptKnown(() => nodesOf(source.on as SourceNode, context), problems);
      const concerned = (matched && outer.limit?.within(matched)) ?? matched ?? nodes;
      if (concerned?.length === 0) continue;
      const stage = await bindStage(
        source,
        {
          id: instanceId(itemId, id),
          title,
          order: -1,
          ...omitUndefined({ nodes: concerned }),
          pace: concerned
            ? (attemptKnown(() => paceOf(source.node, context.scope, concerned.length), problems) ?? {})
            : {},
        },
        context,
      );
      if (stage) bound.push(stage);
    }
  return bound;
}

/** The id of a stage in another stage's `onFailure`: with the suffix of that stage's wave. */
function instanceId(id: string, owner: string): string {
  return `${id}${/@\d+$/.exec(owner)?.[0] ?? ""}`;
}

/** Adds other nodes' values by node name; a name that the stage's own node gave hides a node of that name. */
function withOthers(late: StageScope, others: NonNullable<PlannedStage["others"]>): StageScope {
  if (others.size === 0) return late;
  const stages = { ...late.stages };
  for (const [name, nodes] of others) {
    const own = stages[name];
    const named = [...nodes].filter((node) => node !== "" && node !== ALL_NODES);
    const given: [string, unknown][] = named.map((node) => [node, late.valueOn?.(name, node)]);
    if (nodes.has(ALL_NODES)) given.push([ALL_NODES, late.valuesOf?.(name)]);
    if (!(own instanceof Unknown)) stages[name] = { ...Object.fromEntries(given), ...(own as object) };
    else if (!nodes.has("")) stages[name] = Object.fromEntries(given);
    else stages[name] = new Unknown(own.after, own.needs, own.members && withNames(own.members, nodes));
  }
  return { ...late, stages };
}

function withNames(members: Members, names: ReadonlySet<string>): Members {
  const known = members instanceof Map ? [...members] : Object.entries(members);
  return new Map([...known, ...[...names].map((name) => [name, null] as const)]);
}

/** The scope of a stage's late expressions: with its node, and the outputs of earlier stages. */
function scopeWith(scope: Scope, { node, stages, untrusted = new Set() }: StageScope): Scope {
  const names = { ...scope, ...omitUndefined({ node, vars: node?.vars }), stages };
  return withUntrusted(
    names,
    [...untrusted].map((name) => [`stages.${name}`, undefined] as const),
  );
}

/** Whether all problems are targets that match no node. */
export function isEmptyTarget(problems: readonly Problem[]): boolean {
  return problems.every(({ code }) => code === "TARGET_EMPTY");
}
