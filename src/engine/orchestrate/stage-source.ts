import type { z } from "zod";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { suggest, suggestHint } from "#errors/suggest.ts";
import { mayHoldExpression } from "#engine/expressions/expression.ts";
import { plainOf, SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import { unknownKey } from "#engine/yaml/issues.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Inclusion } from "./inclusion.ts";
import { ApplyShape, RUN_KEYS, RunShape } from "./stage-shape.ts";

/** One stage as its file has it. */
export interface StageSource {
  readonly id: string;
  readonly title: string;
  /** The name NAME of `stages.NAME`, the stage's outputs. */
  readonly register: string;
  readonly at: SourcePosition;
  readonly node: SourceMap;
  readonly work: ApplySource | RunSource;
  /** `on` or `each`; absent: an action for the whole run, or a stage of `onFailure` for the failed node. */
  readonly on?: SourceNode;
  readonly when?: SourceNode;
  /** A list: there is one stage for each item. */
  readonly forEach?: SourceNode;
  readonly afterEach: boolean;
  readonly once: boolean;
  readonly reconnect: boolean;
  readonly order: "file" | "reverse" | "name";
  readonly tags: readonly string[];
  readonly onFailure: readonly StageSource[];
  /** The includes that brought the stage, the outermost first. */
  readonly within: readonly Inclusion[];
}

export interface ApplySource {
  readonly kind: "apply";
  readonly states: readonly AppliedState[];
  /** A map, or an expression that gives a map. */
  readonly with?: SourceNode;
}

export interface AppliedState {
  /** The text in the file, also of an expression. */
  readonly name: string;
  readonly at: SourcePosition;
  /** The name's expression, evaluated for each node; absent: the name is a plain text. */
  readonly each?: SourceNode;
}

export interface RunSource {
  readonly kind: "run";
  readonly action: string;
  readonly at: SourcePosition;
  /** The map under `with`, else the keys beside the stage's own. */
  readonly args: SourceMap;
  readonly check?: StageCheck;
}

/** An action that is a check: it only looks, and further checks follow its failure. */
export interface StageCheck {
  readonly severity: "error" | "warning";
  readonly remedy?: string;
}

/** Keys of stages that apply states: a mistake in a stage that runs an action, not its arguments. */
const strayKeys = ["on", "apply", "reconnect"];

/** Reads the stages that follow when the run failed. */
export function readRunFailure(list: SourceNode | undefined, problems: Problems): readonly StageSource[] {
  return readList(list, problems, "after-action");
}

/** Reads a list of stages, with included and nested stages; continues after a bad stage. */
export function readStages(
  list: SourceNode | undefined,
  problems: Problems,
  include: (node: SourceMap) => readonly StageSource[],
): readonly StageSource[] {
  if (list?.kind !== "list") return [];
  return list.items.flatMap((item) =>
    item.kind === "map" && item.entries.has("include")
      ? (problems.attempt(() => include(item)) ?? [])
      : (readStage(item, problems, "top") ?? []),
  );
}

/** The level of a stage: in `stages`, or in `onFailure` of a stage with nodes, or of another stage or the run. */
type StageLevel = "top" | "after-node" | "after-action";

function readList(list: SourceNode | undefined, problems: Problems, level: StageLevel): readonly StageSource[] {
  if (list?.kind !== "list") return [];
  return list.items.flatMap((item) => readStage(item, problems, level) ?? []);
}

function readStage(node: SourceNode, problems: Problems, level: StageLevel): StageSource | undefined {
  if (node.kind !== "map") {
    problems.add({ code: "YAML_TYPE", message: "a stage must be a map", at: node.at, hint: EXAMPLE });
    return undefined;
  }
  const [hasApply, hasRun] = [node.entries.has("apply"), node.entries.has("run")];
  if (node.entries.has("include")) {
    problems.add(stray("include", node, "it stands among the stages at the top of the file"));
    return undefined;
  }
  if (hasApply === hasRun) {
    problems.add(neitherNor(node, hasApply));
    return undefined;
  }
  return problems.attempt(() => (hasApply ? applyStage(node, problems, level) : runStage(node, problems, level)));
}

function applyStage(node: SourceMap, problems: Problems, level: StageLevel): StageSource {
  const shape = validateValue(plainOf(node), node, ApplyShape);
  const on = node.get("on");
  const states = node.get("apply") as SourceNode;
  if (level === "after-node" && on !== undefined)
    problems.add(stray("on", node, "here it concerns the node whose stage failed"));
  if (level !== "after-node" && on === undefined)
    problems.add(invalid(`stage “${shape.id}” does not say on which nodes`, node.at, `add on: "role:worker"`));
  const given = node.get("with");
  return {
    ...fieldsOf(node, shape, problems, "after-node"),
    work: {
      kind: "apply",
      states: (states.kind === "list" ? states.items : [states]).map((item) => ({
        name: String(plainOf(item)),
        at: item.at,
        ...(mayHoldExpression(String(plainOf(item))) && { each: item }),
      })),
      ...omitUndefined({ with: given }),
    },
    ...omitUndefined({ on }),
    reconnect: shape.reconnect ?? false,
    afterEach: false,
  };
}

function runStage(node: SourceMap, problems: Problems, level: StageLevel): StageSource {
  const own = new Map([...node.entries].filter(([key]) => RUN_KEYS.includes(key)));
  const shape = validateValue(plainOf(withEntries(node, own)), node, RunShape);
  const each = node.get("each");
  for (const key of strayKeys)
    if (node.entries.has(key)) problems.add(stray(key, node, `an action takes “each” for one call a node`));
  if (level === "after-node" && each !== undefined)
    problems.add(stray("each", node, "here it concerns the node whose stage failed"));
  const isPerNode = each !== undefined || level === "after-node";
  const { severity, remedy } = shape;
  if (remedy !== undefined && severity === undefined)
    problems.add(stray("remedy", node, "it is for a check: add severity: error, or severity: warning"));
  if (shape.afterEach === true && (isPerNode || level !== "top"))
    problems.add(stray("afterEach", node, "it is for an action of all nodes at the top of the stages"));
  return {
    ...fieldsOf(node, shape, problems, isPerNode ? "after-node" : "after-action"),
    work: {
      kind: "run",
      action: shape.run,
      at: node.get("run")?.at ?? node.at,
      args: argsOf(node, own, problems),
      ...(severity && { check: { severity, ...omitUndefined({ remedy }) } }),
    },
    ...omitUndefined({ on: each }),
    reconnect: false,
    afterEach: shape.afterEach ?? false,
  };
}

function fieldsOf(
  node: SourceMap,
  shape: Pick<z.output<typeof ApplyShape>, "id" | "title" | "register" | "order" | "once" | "tags">,
  problems: Problems,
  after: StageLevel,
): Omit<StageSource, "work" | "afterEach" | "reconnect"> {
  const [when, forEach] = [node.get("when"), node.get("forEach")];
  return {
    id: shape.id,
    title: shape.title ?? shape.id,
    register: shape.register ?? shape.id,
    at: node.get("id")?.at ?? node.at,
    node,
    ...omitUndefined({ when, forEach }),
    order: shape.order ?? "file",
    once: shape.once ?? false,
    tags: [shape.tags ?? []].flat(),
    onFailure: readList(node.get("onFailure"), problems, after),
    within: [],
  };
}

/** The arguments of an action: under `with`, or beside the stage's own keys, not both. */
function argsOf(node: SourceMap, own: SourceMap["entries"], problems: Problems): SourceMap {
  const inline = new Map([...node.entries].filter(([key]) => !own.has(key) && !strayKeys.includes(key)));
  const given = node.get("with");
  if (given?.kind !== "map") return withEntries(node, inline);
  for (const { key, keyAt } of inline.values())
    problems.add(unknownKey(key, keyAt, RUN_KEYS, { hint: "arguments stand under “with” in this stage" }));
  return given;
}

function withEntries(node: SourceMap, entries: SourceMap["entries"]): SourceMap {
  return new SourceMap(node.file, node.start, node.end, entries, node.flow);
}

/** Refuses an id or a registered name that two stages of a file and its includes share; a YAML alias may repeat one stage. */
export function refuseDuplicates(stages: readonly StageSource[], problems: Problems): void {
  const ids = new Map<string, StageSource>();
  const registers = new Map<string, StageSource>();
  for (const stage of flatten(stages)) {
    const at = stage.within[0]?.at ?? stage.at;
    const first = ids.get(stage.id);
    if (first !== undefined && first.node !== stage.node)
      problems.add({
        code: "STAGE_ID_DUPLICATE",
        message: `there are two stages “${stage.id}”`,
        at,
        hint: `the first is in line ${(first.within[0]?.at ?? first.at).line}; ${stage.within.length > 0 ? "includes share their ids with the file" : "rename one"}`,
      });
    else ids.set(stage.id, stage);
    const other = registers.get(stage.register);
    if (other !== undefined && other.id !== stage.id)
      problems.add(
        invalid(`stages “${other.id}” and “${stage.id}” both register “${stage.register}”`, at, "rename one"),
      );
    registers.set(stage.register, stage);
  }
}

/** Refuses ids such as `web@2` in a file with waves, whose stages get such ids in a run. */
export function refuseNumbered(stages: readonly StageSource[], problems: Problems): void {
  for (const { id, at } of flatten(stages))
    if (id.includes("@"))
      problems.add(invalid(`stage “${id}”: waves number the ids of their stages themselves`, at, "leave out the @"));
}

function flatten(stages: readonly StageSource[]): readonly StageSource[] {
  return stages.flatMap((stage) => [stage, ...flatten(stage.onFailure)]);
}

const EXAMPLE = 'such as { id: web, on: "role:web", apply: [web] } or { id: check, run: cluster.health }';

function neitherNor(node: SourceMap, hasBoth: boolean): Problem {
  if (hasBoth) return invalid("a stage either applies states or runs an action", node.at, "make it two stages");
  const mistyped = [...node.entries.values()].find(({ key }) => suggest(key, ["apply", "run"]) !== undefined);
  return invalid(
    "a stage needs “apply” (states on nodes) or “run” (an action)",
    mistyped?.keyAt ?? node.at,
    mistyped === undefined ? EXAMPLE : (suggestHint(mistyped.key, ["apply", "run"]) as string),
  );
}

function stray(key: string, node: SourceMap, hint: string): Problem {
  return invalid(`“${key}” does not belong to this stage`, node.entries.get(key)?.keyAt ?? node.at, hint);
}

function invalid(message: string, at: SourcePosition, hint: string): Problem {
  return { code: "STAGE_INVALID", message, at, hint };
}
