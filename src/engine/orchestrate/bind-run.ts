import { KcoreError } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import { commandReferences, refuseSyntax, shellSources } from "#engine/expressions/shell-values.ts";
import { Unknown } from "#engine/expressions/unknown.ts";
import { lateNeeds } from "#engine/params/bind-params.ts";
import { requireOpen } from "#engine/step/encrypted-value.ts";
import { scriptAmong } from "#engine/step/shell-text.ts";
import { nodeAt, plainOf, type SourceMap, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { definitionOf } from "#engine/yaml/schema-keys.ts";
import { validateValue } from "#engine/yaml/validate.ts";
import type { Action } from "./action.ts";
import type { BindContext } from "./bind-context.ts";
import type { StageScope, StageTask } from "./plan.ts";
import { RUN_KEYS } from "./stage-shape.ts";
import type { RunSource } from "./stage-source.ts";

/** Binds an action to its arguments; undefined, with the problem added, if there is no such action. `scopeOf`: the scope of late expressions. */
export async function bindRun(
  { action: name, at, args }: RunSource,
  context: BindContext,
  scopeOf: (late: StageScope) => Scope,
): Promise<StageTask | undefined> {
  const { catalogue, problems, scope } = context;
  const action = await catalogue.action(name);
  if (action === undefined) {
    const { actionNames } = catalogue;
    const hint = suggestHint(name, actionNames, `there are: ${actionNames.join(", ")}`);
    problems.add({ code: "ACTION_UNKNOWN", message: `no action “${name}”`, at, hint });
    return undefined;
  }
  refuseUnknownArgs(action, args, problems);
  const texts = shellSources(action.args, args, {}).map(({ scalar }) => scalar);
  for (const text of texts) problems.attempt(() => refuseSyntax(text));
  const scripts = [...args.entries.values()].flatMap(({ value }) => scriptsOf(value));
  for (const text of new Set([...texts, ...scripts])) problems.attempt(() => refuseAnswer(text, scope));
  return {
    kind: "action",
    action,
    args: (late) => {
      refuseUntrustedValues(args, action.bastionNames ?? [], late);
      const known = scopeOf(late);
      const value = evaluate(args, known);
      requireOpen(value);
      for (const text of texts) refuseSyntax(text, known);
      return validateValue(value, args, action.args);
    },
  };
}

/** The script file that a shell in these words reads. */
function scriptsOf(words: SourceNode): readonly SourceScalar[] {
  const at = words.kind === "list" ? scriptAmong(words.items.map(plainOf)) : undefined;
  const script = words.kind === "list" && at !== undefined ? words.items[at] : undefined;
  return script?.kind === "scalar" && typeof script.value === "string" ? [script] : [];
}

/** Refuses an answer of the run as a command's name or as a whole command of the bastion: the operator must write the command. */
function refuseAnswer(text: SourceScalar, scope: Scope): void {
  const { facts, steps, stages } = lateNeeds(commandReferences(text), { ...scope, stages: new Unknown("stages") });
  if (!facts && steps.length + stages.length === 0) return;
  throw new KcoreError({
    code: "EXPRESSION_UNQUOTED",
    message: "an answer of the run must not be a command of the bastion",
    at: text.at,
    hint: "write the command, with {{shell …}} for what it is given; eval {{shell …}} runs it as it is",
  });
}

/** Refuses a node's answer as the name of a file, program or host for the bastion. @throws KcoreError STAGE_INVALID */
function refuseUntrustedValues(args: SourceMap, names: readonly string[], { untrusted }: StageScope): void {
  for (const name of names) {
    const value = nodeAt(args, name.split("."));
    if (value?.kind !== "scalar") continue;
    // A path that names no stage reads all of `stages`, nodes' answers included.
    const { paths } = referencesOf(value);
    const found = paths.find(([root, stage]) => root === "stages" && (stage === undefined || untrusted?.has(stage)));
    if (found === undefined) continue;
    throw new KcoreError({
      code: "STAGE_INVALID",
      message: `“${name}” names a file, a program or a host for the bastion: it cannot rest on what a node told (“${found.slice(0, 2).join(".")}”)`,
      at: value.at,
      hint: "write it out, or take it from params, node, nodes or vars; a content may be what a node told",
    });
  }
}

/** Refuses unknown arguments of an action before the run, even if their values are known only during it. */
function refuseUnknownArgs(action: Action, args: SourceMap, problems: Problems): void {
  const known = definitionOf(action.args);
  if (known.type !== "object" || known.shape === undefined || known.catchall?.def.type !== "never") return;
  for (const { key, keyAt } of args.entries.values()) {
    if (Object.hasOwn(known.shape, key)) continue;
    const names = [...Object.keys(known.shape), ...RUN_KEYS];
    problems.add({
      code: "YAML_KEY_UNKNOWN",
      message: `neither a stage nor the action “${action.name}” has a key “${key}”`,
      at: keyAt,
      hint: suggestHint(
        key,
        names,
        `“${action.name}” takes ${Object.keys(known.shape).join(", ") || "nothing"}`,
      ) as string,
    });
  }
}
