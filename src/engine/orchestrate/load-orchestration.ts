import { z } from "zod";
import { KcoreError, type Problem, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { findIn, type Folder, listIn } from "#engine/project/folders.ts";
import type { SourceMap, SourceNode } from "#engine/yaml/node.ts";
import { declareParams, type ParamDeclaration, type ParamDeclarations } from "#engine/params/declare-params.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { checkPlaces } from "#engine/encrypted-values/places.ts";
import { readSource } from "#engine/yaml/read.ts";
import { validate, validateValue } from "#engine/yaml/validate.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { checkReferences } from "./check-references.ts";
import { type Inclusion, readInclude } from "./inclusion.ts";
import { readRunFailure, readStages, refuseDuplicates, refuseNumbered, type StageSource } from "./stage-source.ts";

/** An orchestration as its file has it; its expressions are not evaluated yet. */
export interface Orchestration {
  readonly name: string;
  /** The file's name in messages: `orchestrate/deploy_node.yaml`. */
  readonly file: string;
  readonly description?: string;
  readonly params: ParamDeclarations;
  /** The one parameter of type `target`, if there is exactly one. */
  readonly target?: ParamDeclaration;
  readonly waves: readonly WaveSource[];
  readonly stages: readonly StageSource[];
  /** The stages that follow, once, a failure of the run. */
  readonly onFailure: readonly StageSource[];
}

/** One of `waves`: some of the target's nodes, which go through the stages together. */
export interface WaveSource {
  readonly node: SourceMap;
  readonly on: SourceNode;
  /** A list: there is one wave for each item. */
  readonly forEach?: SourceNode;
  readonly at: SourcePosition;
  /** The includes that brought the wave, the outermost first. */
  readonly within: readonly Inclusion[];
}

/** The schema of a file's top. */
export const OrchestrationShape = z.strictObject({
  description: z.string().optional().describe("The purpose, in one sentence."),
  params: z.unknown().optional().describe("The parameters of the orchestration, by name."),
  waves: z
    .array(z.looseObject({ on: z.unknown() }))
    .min(1)
    .optional()
    .describe("In which groups the target's nodes go through the stages."),
  stages: z.array(z.unknown()).min(1).describe("The stages, in this order."),
  onFailure: z.array(z.unknown()).min(1).optional().describe("Stages that follow, once, when the run failed."),
});

/** The schema of one of `waves`. */
export const WaveShape = z.strictObject({
  on: z
    .union([z.string(), z.array(z.string()).min(1)])
    .describe("A target: those of its nodes that no earlier wave took."),
  forEach: z.unknown().optional().describe("A list: there is one such wave for each item, which “on” sees as item."),
  batch: z.unknown().optional().describe("The number of nodes (or a share, 25%) in each group."),
  concurrency: z.unknown().optional().describe("The most nodes at a time, for stages without a limit of their own."),
  maxFailures: z
    .unknown()
    .optional()
    .describe("The number (or share) of nodes that may fail, for stages without a limit of their own."),
  maxUnavailable: z
    .unknown()
    .optional()
    .describe("The most nodes at a time, less those that failed, for stages without a limit of their own."),
});

/** The place of an `include`, and the names of the files that led to it. */
interface IncludePlace {
  readonly at?: SourcePosition;
  readonly path: readonly string[];
}

/**
 * Reads `NAME.yaml` from the first folder that has it, and its includes.
 * @throws KcoreError with every problem of the files; ORCHESTRATION_NOT_FOUND, STAGE_INCLUDE_CYCLE.
 */
export function loadOrchestration(
  name: string,
  folders: readonly Folder[],
  { at, path: before }: IncludePlace = { path: [] },
): Orchestration {
  if (before.includes(name)) throw new KcoreError(circle([...before.slice(before.indexOf(name)), name], at));
  const found = findIn(folders, `${name}.yaml`);
  if (found === undefined) throw new KcoreError({ ...notFound(name, folders), ...(at && { at }) });
  const { path, shown, folder } = found;
  const root = readSource(path, { name: shown, ...omitUndefined({ check: folder.check }) });
  return readOrchestration(name, shown, root, (included, place) =>
    loadOrchestration(included, folders, { at: place, path: [...before, name] }),
  );
}

/** The names of all orchestrations, each with its origin. */
export function listOrchestrations(folders: readonly Folder[]): ReadonlyMap<string, Folder["origin"]> {
  return new Map(
    [...listIn(folders, [".yaml"])].map(([file, { folder }]) => [file.slice(0, -".yaml".length), folder.origin]),
  );
}

/** An orchestration from its parsed file; `load` returns an included orchestration. @throws KcoreError with every problem of the file */
export function readOrchestration(
  name: string,
  file: string,
  root: SourceNode,
  load: (name: string, at: SourcePosition) => Orchestration,
): Orchestration {
  const problems = new Problems();
  checkPlaces(root, problems);
  const description = problems.attempt(() => validateValue(shapeOf(root), root, OrchestrationShape))?.description;
  const params = problems.attempt(() => declareParams(child(root, "params"))) ?? new Map<string, ParamDeclaration>();
  const own = problems.attempt(() => readWaves(child(root, "waves"))) ?? [];
  const included: { readonly inclusion: Inclusion; readonly waves: readonly WaveSource[] }[] = [];
  const onFailure = [...readRunFailure(child(root, "onFailure"), problems)];
  const stages = readStages(child(root, "stages"), problems, (node) => {
    const source = readInclude(node);
    const loaded = load(source.include, source.at);
    const inclusion = { ...source, params: loaded.params };
    onFailure.push(...loaded.onFailure.map((stage) => insideOf(inclusion, stage)));
    included.push({ inclusion, waves: loaded.waves });
    return loaded.stages.map((stage) => insideOf(inclusion, stage));
  });
  const waves = own.length > 0 ? own : (problems.attempt(() => wavesOfOne(included)) ?? []);
  refuseDuplicates([...stages, ...onFailure], problems);
  checkReferences({ stages, onFailure }, problems);
  if (waves.length > 0) refuseNumbered([...stages, ...onFailure], problems);
  const targets = [...params.values()].filter(({ type }) => type === "target");
  if (waves[0] !== undefined && targets.length !== 1)
    problems.add({
      code: "ORCHESTRATION_INVALID",
      message: `waves need exactly one parameter of type target, here are ${targets.length}`,
      at: waves[0].within[0]?.at ?? waves[0].at,
      hint: "declare it: params: { node_name: { type: target, required: true } }",
    });
  problems.throwIfAny();
  return {
    name,
    file,
    ...omitUndefined({ description }),
    params,
    ...(targets.length === 1 && targets[0] && { target: targets[0] }),
    waves,
    stages,
    onFailure,
  };
}

function child(root: SourceNode, key: string): SourceNode | undefined {
  return root.kind === "map" ? root.get(key) : undefined;
}

/** The top of the file without deeper levels, whose own readers check them with exact places. */
function shapeOf(root: SourceNode): unknown {
  if (root.kind !== "map") return root.kind === "scalar" ? root.value : [];
  return Object.fromEntries(
    [...root.entries.values()].map(({ key, value }) => {
      if (value.kind === "list") return [key, value.items.map((item) => (item.kind === "map" ? { on: "" } : item))];
      return [key, value.kind === "scalar" ? value.value : {}];
    }),
  );
}

function readWaves(node: SourceNode | undefined): readonly WaveSource[] {
  if (node?.kind !== "list") return [];
  const problems = new Problems();
  const waves = node.items.flatMap((item) => {
    const isFine = problems.attempt(() => validate(item, WaveShape)) !== undefined;
    const [on, forEach] = [child(item, "on"), child(item, "forEach")];
    return isFine && item.kind === "map" && on
      ? [{ node: item, on, ...omitUndefined({ forEach }), at: item.at, within: [] }]
      : [];
  });
  problems.throwIfAny();
  return waves;
}

function insideOf(inclusion: Inclusion, stage: StageSource): StageSource {
  const onFailure = stage.onFailure.map((inner) => insideOf(inclusion, inner));
  return { ...stage, onFailure, within: [inclusion, ...stage.within] };
}

/** The waves for a file without waves: the waves of the only include that has some, which would be lost otherwise. */
function wavesOfOne(
  included: readonly { readonly inclusion: Inclusion; readonly waves: readonly WaveSource[] }[],
): readonly WaveSource[] {
  const [first, second] = included.filter(({ waves }) => waves.length > 0);
  if (first === undefined) return [];
  const { inclusion, waves } = first;
  if (second === undefined) return waves.map((wave) => ({ ...wave, within: [inclusion, ...wave.within] }));
  throw new KcoreError({
    code: "ORCHESTRATION_INVALID",
    message: `both “${inclusion.include}” and “${second.inclusion.include}” go in waves`,
    at: second.inclusion.at,
    hint: 'say here how all of it goes: waves: [{ on: "role:controller", batch: 1 }, { on: "*" }]',
  });
}

function circle(names: readonly string[], at: SourcePosition | undefined): Problem {
  return {
    code: "STAGE_INCLUDE_CYCLE",
    message: `orchestrations include each other: ${names.join(" → ")}`,
    ...(at && { at }),
    hint: "remove one include; stages that both need can stand in a third file",
  };
}

function notFound(name: string, folders: readonly Folder[]) {
  const names = [...listOrchestrations(folders).keys()];
  const known = names.length === 0 ? "there is none yet" : `there are: ${names.join(", ")}`;
  const hint = suggestHint(name, names, known);
  return {
    code: "ORCHESTRATION_NOT_FOUND",
    message: `no orchestration “${name}”`,
    ...omitUndefined({ hint }),
  } as const;
}
