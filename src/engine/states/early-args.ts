import type { Problem } from "#errors/problem.ts";
import type { ModuleDefinition } from "#engine/step/define.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { refuseSyntax, shellSources } from "#engine/expressions/shell-values.ts";
import type { SourceEntry, SourceMap, SourceNode } from "#engine/yaml/node.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { attemptKnown } from "#engine/expressions/unknown.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { problemsOf } from "#engine/yaml/validate.ts";

/**
 * The faults of a step's arguments that no late value can correct: unknown keys, and wrong values of known arguments.
 * Missing arguments, and faults of several arguments together, wait for all values.
 */
export function knownArgProblems(module: ModuleDefinition, args: SourceNode, scope: Scope): readonly Problem[] {
  if (args.kind !== "map") return [];
  const known = new Map<string, SourceEntry>();
  const values = Object.create(null) as Record<string, unknown>;
  const problems = new Problems();
  for (const entry of args.entries.values()) {
    values[entry.key] = undefined;
    attemptKnown(() => {
      values[entry.key] = evaluate(entry.value, scope);
      known.set(entry.key, entry);
    }, problems);
  }
  for (const { scalar } of shellSources(module.args, args, values))
    attemptKnown(() => refuseSyntax(scalar, isWithin(scalar.start, known) ? scope : undefined), problems);
  const certain = problemsOf(values, args, module.args).filter((problem) => isCertain(problem, args, known));
  return [...problems.list, ...certain];
}

function isCertain({ code, at }: Problem, args: SourceMap, known: ReadonlyMap<string, SourceEntry>): boolean {
  if (code === "YAML_KEY_UNKNOWN") return true;
  if (code === "YAML_KEY_MISSING" || at === undefined) return false;
  return isWithin(args.file.offset(at.line, at.column), known);
}

function isWithin(offset: number, entries: ReadonlyMap<string, SourceEntry>): boolean {
  return [...entries.values()].some(({ value }) => offset >= value.start && offset <= value.end);
}
