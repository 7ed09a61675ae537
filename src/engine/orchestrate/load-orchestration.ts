import { z } from "zod";
import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { findIn, type Folder, listIn } from "#engine/project/folders.ts";
import type { SourceMap, SourceNode } from "#engine/yaml/node.ts";
import { declareParams, type ParamDeclaration, type ParamDeclarations } from "#engine/params/declare-params.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { readSource } from "#engine/yaml/read.ts";
import { validate, validateValue } from "#engine/yaml/validate.ts";
import { checkReferences } from "./check-references.ts";
import { readStages, type StageSource } from "./stage-source.ts";

/** An orchestration as its file says it; expressions are not evaluated yet. */
export interface Orchestration {
  readonly name: string;
  /** As shown: `orchestrate/deploy_node.yaml`. */
  readonly file: string;
  readonly description?: string;
  readonly params: ParamDeclarations;
  /** The one parameter of type `target`, if there is exactly one. */
  readonly target?: ParamDeclaration;
  readonly waves: readonly WaveSource[];
  readonly stages: readonly StageSource[];
}

/** In which groups the target's nodes go through the stages. */
export interface WaveSource {
  readonly node: SourceMap;
  readonly on: SourceNode;
  readonly at: SourcePosition;
}

const Shape = z.strictObject({
  description: z.string().optional(),
  params: z.unknown().optional(),
  waves: z
    .array(z.looseObject({ on: z.unknown() }))
    .min(1)
    .optional(),
  stages: z.array(z.unknown()).min(1),
});

const WaveShape = z.strictObject({
  on: z.union([z.string(), z.array(z.string()).min(1)]),
  batch: z.unknown().optional(),
  concurrency: z.unknown().optional(),
  maxFailures: z.unknown().optional(),
});

/**
 * Reads `NAME.yaml` from the first folder that has it.
 * @throws KcoreError with every problem of the file; ORCHESTRATION_NOT_FOUND.
 */
export function loadOrchestration(name: string, folders: readonly Folder[]): Orchestration {
  const found = findIn(folders, `${name}.yaml`);
  if (found === undefined) throw new KcoreError(notFound(name, folders));
  const { path, shown, folder } = found;
  return readOrchestration(
    name,
    shown,
    readSource(path, { name: shown, ...(folder.check && { check: folder.check }) }),
  );
}

/** Names of all orchestrations, with whose they are. */
export function listOrchestrations(folders: readonly Folder[]): ReadonlyMap<string, Folder["origin"]> {
  return new Map(
    [...listIn(folders, [".yaml"])].map(([file, { folder }]) => [file.slice(0, -".yaml".length), folder.origin]),
  );
}

/** An orchestration from its parsed file. @throws KcoreError with every problem of it. */
export function readOrchestration(name: string, file: string, root: SourceNode): Orchestration {
  const { description } = validateValue(shapeOf(root), root, Shape);
  const problems = new Problems();
  const params = problems.attempt(() => declareParams(child(root, "params"))) ?? new Map<string, ParamDeclaration>();
  const waves = problems.attempt(() => readWaves(child(root, "waves"))) ?? [];
  const stages = readStages(child(root, "stages"), problems);
  checkReferences(stages, problems);
  const targets = [...params.values()].filter(({ type }) => type === "target");
  if (waves[0] !== undefined && targets.length !== 1)
    problems.add({
      code: "ORCHESTRATION_INVALID",
      message: `waves need exactly one parameter of type target, here are ${targets.length}`,
      at: waves[0].at,
      hint: "declare it: params: { node_name: { type: target, required: true } }",
    });
  problems.throwIfAny();
  return {
    name,
    file,
    ...(description !== undefined && { description }),
    params,
    ...(targets.length === 1 && targets[0] && { target: targets[0] }),
    waves,
    stages,
  };
}

function child(root: SourceNode, key: string): SourceNode | undefined {
  return root.kind === "map" ? root.get(key) : undefined;
}

/** The top of the file with what lies deeper left out: that is checked on its own, with places of its own. */
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
    const on = child(item, "on");
    return isFine && item.kind === "map" && on ? [{ node: item, on, at: item.at }] : [];
  });
  problems.throwIfAny();
  return waves;
}

function notFound(name: string, folders: readonly Folder[]) {
  const names = [...listOrchestrations(folders).keys()];
  const hint = suggestHint(name, names, names.length === 0 ? "there is none yet" : `there are: ${names.join(", ")}`);
  return {
    code: "ORCHESTRATION_NOT_FOUND",
    message: `no orchestration “${name}”`,
    ...(hint !== undefined && { hint }),
  } as const;
}
