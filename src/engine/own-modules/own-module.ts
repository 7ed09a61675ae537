import { z } from "zod";
import { KcoreError } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { evaluate } from "#engine/expressions/evaluate.ts";
import type { Scope } from "#engine/expressions/scope.ts";
import type { ShellSource } from "#engine/expressions/shell-values.ts";
import { blobOf, type Blob } from "#engine/step/blob.ts";
import {
  defineModule,
  type StepFacts,
  type ModuleDefinition,
  type Step,
  type StepContext,
} from "#engine/step/define.ts";
import { Duration, AbsolutePath, UnitName, UserName } from "#engine/step/fields.ts";
import { Secret } from "#engine/step/secret.ts";
import type { Sh } from "#engine/step/sh.ts";
import { type SourceMap, type SourceNode, type SourceScalar } from "#engine/yaml/node.ts";
import { unknownKeys } from "#engine/yaml/issues.ts";
import { Problems } from "#engine/yaml/problems.ts";
import { validate, validateValue } from "#engine/yaml/validate.ts";
import { readArguments } from "./arguments.ts";
import { shellTemplate, type ShellTemplate } from "./shell-template.ts";
import type { NodeResource } from "#engine/step/effects.ts";

/** A module that a project defines in YAML. */
export interface OwnModule {
  readonly module: ModuleDefinition;
  /** The module's example arguments. */
  readonly example?: Readonly<Record<string, unknown>>;
  /** The module's texts of sh. */
  readonly shell: readonly ShellSource[];
}

const textKeys = ["probe", "apply", "guard", "foresee", "react", "keep", "show"] as const;
type TextKey = (typeof textKeys)[number];
const keys = [
  "summary",
  "args",
  "example",
  "files",
  "want",
  "changes",
  "restsOn",
  "tools",
  "shown",
  "timeout",
  ...textKeys,
];

const Tools = z.record(z.string().regex(/^[\w.+-]+$/, "must be a command's name"), z.string().min(1));

/** One resource of a node in a module's `changes` or `restsOn`. */
const ResourceSchema = z.union([
  z.strictObject({ path: AbsolutePath }).transform(({ path }): NodeResource => ({ is: "path", path })),
  z.strictObject({ tree: AbsolutePath }).transform(({ tree }): NodeResource => ({ is: "tree", path: tree })),
  z.strictObject({ service: UnitName }).transform(({ service }): NodeResource => ({ is: "service", name: service })),
  z.strictObject({ user: UserName }).transform(({ user }): NodeResource => ({ is: "user", name: user })),
  z.strictObject({ group: UserName }).transform(({ group }): NodeResource => ({ is: "group", name: group })),
  z.strictObject({ packages: z.literal(true) }).transform((): NodeResource => ({ is: "packages" })),
  z
    .strictObject({ program: z.string().min(1) })
    .transform(({ program }): NodeResource => ({ is: "program", name: program })),
]);

/** The resources of a node that a module may change, and those that its probe depends on, for dry runs. */
const EffectsSchema = z
  .strictObject({ changes: z.array(ResourceSchema), restsOn: z.array(ResourceSchema) })
  .transform(({ changes, restsOn }) => ({ writes: changes, reads: restsOn }));

/**
 * Reads a module of YAML: arguments as JSON Schema, want as facts, probe and apply as sh texts with typed holes (docs/own-modules.md).
 * @throws KcoreError with every problem at its place
 */
export function readOwnModule(name: string, source: SourceNode): OwnModule {
  if (source.kind !== "map") throw invalid("a module is a map of summary, args, want, probe and apply", source);
  const problems = new Problems();
  problems.add(...unknownKeys(source, keys));
  const summary = problems.attempt(() =>
    requiredText(source, "summary", "one sentence: the thing that it keeps in order"),
  );
  const args = problems.attempt(() => readArguments(source.get("args")));
  const want = problems.attempt(() => factsIn(source, "want"));
  if (want === undefined && !source.entries.has("want"))
    problems.add(
      ...invalid("the module wants nothing", source, "want: { NAME: the value that the probe shall find }").problems,
    );
  const shell = readTexts(source, args?.code ?? new Set(), problems);
  if (!source.entries.has("probe"))
    problems.add(...invalid("the module has no probe", source, 'probe: fact NAME "what there is"').problems);
  const files = source.get("files");
  if (files !== undefined && files.kind !== "map")
    problems.add(...invalid("files is a map of texts", files, "files: { NAME: text }").problems);
  const tools = problems.attempt(() => toolsOf(source.get("tools")));
  const timeout = problems.attempt(() => timeoutOf(source.get("timeout")));
  problems.throwIfAny();
  const parts: ModuleParts = {
    source,
    args: args as ModuleParts["args"],
    shell,
    tools: tools ?? [],
    ...omitUndefined({ timeout }),
  };
  const module = defineModule({
    name,
    summary: summary ?? "",
    args: parts.args.schema,
    refusals: ["MODULE_REFUSED"],
    step: (given, context) => makeStep(parts, given, context),
  });
  const example = source.get("example");
  const texts = [...shell.keys()].map((name) => ({ scalar: source.get(name) as SourceScalar, shell: "sh" }));
  if (example === undefined) return { module, shell: texts };
  return { module, shell: texts, example: validate(example, parts.args.schema) };
}

interface ModuleParts {
  readonly source: SourceMap;
  readonly args: ReturnType<typeof readArguments>;
  readonly shell: ReadonlyMap<TextKey, ShellTemplate>;
  readonly tools: NonNullable<Step["tools"]>;
  readonly timeout?: number;
}

/** The step of a module with these arguments. @throws KcoreError at the places in the module's file where expressions fail */
function makeStep(parts: ModuleParts, given: Readonly<Record<string, unknown>>, context: StepContext): Step {
  const { source, args, tools, timeout } = parts;
  // An absent argument is null, so that `#if` can test it.
  const values = Object.fromEntries(args.names.map((name) => [name, given[name] ?? null]));
  const scope = { args: values, node: { name: context.node, stateDir: context.stateDir } };
  const whole: Scope = { ...scope, files: filesOf(source.get("files"), scope, context) };
  const fill = (text: TextKey): Sh | undefined => parts.shell.get(text)?.fill(whole);
  const shown = source.get("shown");
  const effects = effectsOf(source, whole);
  return {
    want: factsOf(source.get("want") as SourceNode, whole),
    probe: fill("probe") as Sh,
    tools,
    ...omitUndefined({
      apply: fill("apply"),
      guard: fill("guard"),
      foresee: fill("foresee"),
      react: fill("react"),
      keep: fill("keep"),
      show: fill("show"),
      shown: shown === undefined ? undefined : plainText(shown, whole),
      timeout,
      effects,
    }),
  };
}

function readTexts(
  source: SourceMap,
  code: ReadonlySet<string>,
  problems: Problems,
): ReadonlyMap<TextKey, ShellTemplate> {
  const found = new Map<TextKey, ShellTemplate>();
  for (const name of textKeys) {
    const node = source.get(name);
    if (node === undefined) continue;
    if (node.kind !== "scalar" || typeof node.value !== "string")
      problems.add(...invalid(`${name} is a text of sh`, node, `${name}: |`).problems);
    else {
      const template = problems.attempt(() => shellTemplate(node as SourceScalar, code));
      if (template) found.set(name, template);
    }
  }
  return found;
}

/** The texts of `files` as blobs; `{{files.NAME}}` is the path of the text NAME on the node. */
function filesOf(node: SourceNode | undefined, scope: Scope, { sensitive }: StepContext): ReadonlyMap<string, Blob> {
  if (node?.kind !== "map") return new Map();
  const files = evaluate(node, scope) as Readonly<Record<string, unknown>>;
  return new Map(
    Object.entries(files).map(([name, text]) => {
      if (text instanceof Secret) return [name, blobOf(text.reveal(), { sensitive: true })];
      if (typeof text !== "string") throw invalid(`the file “${name}” is no text`, node.get(name) ?? node);
      return [name, blobOf(text, { sensitive: sensitive === true })];
    }),
  );
}

/** The wanted facts; null leaves a fact out. @throws KcoreError for a secret, since facts are shown, and for a list or map */
function factsOf(node: SourceNode, scope: Scope): StepFacts {
  const facts = Object.entries(evaluate(node, scope) as Readonly<Record<string, unknown>>);
  return Object.fromEntries(
    facts.flatMap(([name, value]) => {
      if (value === null) return [];
      if (typeof value === "string" || typeof value === "number" || typeof value === "boolean")
        return [[name, String(value)]];
      const what = value instanceof Secret ? "a secret, and facts are shown" : "no text, number or truth value";
      throw invalid(`the fact “${name}” is ${what}`, node.kind === "map" ? (node.get(name) ?? node) : node);
    }),
  );
}

function plainText(node: SourceNode, scope: Scope): string {
  const text = evaluate(node, scope);
  if (typeof text === "string") return text;
  throw invalid("a shown text is no secret", node);
}

function effectsOf(source: SourceMap, scope: Scope): Step["effects"] {
  const [changes, restsOn] = [source.get("changes"), source.get("restsOn")];
  if (changes === undefined && restsOn === undefined) return undefined;
  const value = (node: SourceNode | undefined): unknown => (node === undefined ? [] : evaluate(node, scope));
  return validateValue({ changes: value(changes), restsOn: value(restsOn) }, source, EffectsSchema);
}

function toolsOf(node: SourceNode | undefined): NonNullable<Step["tools"]> {
  if (node === undefined) return [];
  return Object.entries(validate(node, Tools)).map(([command, pack]) => ({ command, package: pack }));
}

function timeoutOf(node: SourceNode | undefined): number | undefined {
  return node === undefined ? undefined : validate(node, Duration);
}

function requiredText(source: SourceMap, key: string, hint: string): string {
  const node = source.get(key);
  if (node?.kind === "scalar" && typeof node.value === "string" && node.value.trim() !== "") return node.value.trim();
  throw invalid(`the module has no ${key}`, node ?? source, hint);
}

function factsIn(source: SourceMap, key: string): SourceMap | undefined {
  const node = source.get(key);
  if (node === undefined || (node.kind === "map" && node.entries.size > 0)) return node;
  throw invalid(`${key} is a map of facts`, node, `${key}: { NAME: value }`);
}

function invalid(message: string, { at }: Pick<SourceNode, "at">, hint = "see docs/own-modules.md"): KcoreError {
  return new KcoreError({ code: "MODULE_INVALID", message, at, hint });
}
