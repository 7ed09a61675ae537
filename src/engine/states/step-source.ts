import { z } from "zod";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import { type SourceMap, type SourceNode } from "#engine/yaml/node.ts";
import type { Problems } from "#engine/yaml/problems.ts";
import { referencesOf } from "#engine/expressions/references.ts";
import { shellSources, unquotedProblems } from "#engine/expressions/shell-values.ts";
import { problemsOf } from "#engine/yaml/validate.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { ValueKeys } from "./step-keys.ts";

/** A name of an earlier step and where it stands. */
export interface Requisite {
  readonly name: string;
  readonly at: SourcePosition;
}

export const requisiteKeys = ["require", "onChanges", "restartOn", "onFailure"] as const;
export type RequisiteKey = (typeof requisiteKeys)[number];
export type Requisites = Readonly<Record<RequisiteKey, readonly Requisite[]>>;

interface CommonSource {
  readonly node: SourceMap;
  /** The place of the id, else of the whole step. */
  readonly at: SourcePosition;
  readonly when?: SourceNode;
  readonly each?: SourceNode;
  readonly tags: readonly string[];
  readonly requisites: Requisites;
}

export interface ModuleStepSource extends CommonSource {
  readonly kind: "module";
  readonly id: string;
  readonly module: string;
  readonly moduleAt: SourcePosition;
  readonly args: SourceNode;
  readonly register?: string;
}

export interface IncludeSource extends CommonSource {
  readonly kind: "include";
  readonly id?: string;
  readonly include: string;
  readonly includeAt: SourcePosition;
  readonly with?: SourceNode;
}

/** One item of a state's `steps`, as written. */
export type StepSource = ModuleStepSource | IncludeSource;

/** The keys of a step beside its module. A test compares docs/states.md with them. */
export const STEP_KEYS: readonly string[] = [
  "id",
  "when",
  "each",
  ...requisiteKeys,
  ...Object.keys(ValueKeys.shape),
  "register",
  "tags",
];
const INCLUDE_KEYS = ["include", "with", "id", "when", "each", "require", "tags"];

/** Reads one step. Undefined, with its problems added, if the step cannot be used. */
export function readStep(node: SourceNode, problems: Problems): StepSource | undefined {
  if (node.kind !== "map") {
    problems.add(invalid("a step is a map with an id and a module", node.at));
    return undefined;
  }
  // Every expression is parsed now, so that a bad one fails before the run.
  for (const { value } of node.entries.values()) problems.attempt(() => referencesOf(value));
  return node.entries.has("include") ? readInclude(node, problems) : readModuleStep(node, problems);
}

function readModuleStep(node: SourceMap, problems: Problems): ModuleStepSource | undefined {
  const modules = [...node.entries.values()].filter(({ key }) => !STEP_KEYS.includes(key));
  const [entry, second] = modules.filter(({ key }) => key.includes("."));
  for (const { key, keyAt } of modules)
    if (!key.includes(".")) problems.add(unknownKey(key, keyAt, [...STEP_KEYS, "include", "with"]));
  if (second !== undefined)
    problems.add(
      invalid(`a step has exactly one module; this is a second one`, second.keyAt, "make it a step of its own"),
    );
  if (entry === undefined) {
    if (modules.length === 0) problems.add(invalid("the step has no module", node.at, "add one, such as file.managed"));
    return undefined;
  }
  checkShape(node, problems);
  const id = stringIn(node.get("id"));
  if (id === undefined) {
    problems.add(invalid(`this ${entry.key} step has no id`, entry.keyAt, "id: a few words that tell what it does"));
    return undefined;
  }
  const register = stringIn(node.get("register"));
  return {
    kind: "module",
    id,
    module: entry.key,
    moduleAt: entry.keyAt,
    args: entry.value,
    ...omitUndefined({ register }),
    ...commonOf(node),
  };
}

function readInclude(node: SourceMap, problems: Problems): IncludeSource | undefined {
  for (const { key, keyAt } of node.entries.values())
    if (!INCLUDE_KEYS.includes(key)) problems.add(unknownKey(key, keyAt, INCLUDE_KEYS));
  checkShape(node, problems);
  const name = node.get("include");
  const include = stringIn(name);
  if (name === undefined || include === undefined || !/^[A-Za-z0-9_-]+(\/[A-Za-z0-9_-]+)*$/.test(include)) {
    problems.add(invalid("include names one state, written out, such as kcore/runtime", name?.at ?? node.at));
    return undefined;
  }
  const given = node.get("with");
  const id = stringIn(node.get("id"));
  return {
    kind: "include",
    include,
    includeAt: name.at,
    ...omitUndefined({ with: given, id }),
    ...commonOf(node),
  };
}

function commonOf(node: SourceMap): CommonSource {
  const [when, each] = [node.get("when"), node.get("each")];
  return {
    node,
    at: (node.get("id") ?? node).at,
    ...omitUndefined({ when, each }),
    tags: namesOf(node.get("tags")).map(({ name }) => name),
    requisites: {
      require: namesOf(node.get("require")),
      onChanges: namesOf(node.get("onChanges")),
      restartOn: namesOf(node.get("restartOn")),
      onFailure: namesOf(node.get("onFailure")),
    },
  };
}

function namesOf(node: SourceNode | undefined): Requisite[] {
  if (node === undefined) return [];
  const items = node.kind === "list" ? node.items : [node];
  return items.flatMap((item) => {
    const name = stringIn(item);
    return name === undefined ? [] : [{ name, at: item.at }];
  });
}

const Names = z.union([z.string().min(1), z.array(z.string().min(1))]);
const Tag = z.string().regex(/^[A-Za-z0-9][\w.-]*$/, "must be a word of letters, digits, “-”, “_” and “.”");
/** Words by which `--tags` chooses a step or a stage. */
export const Tags = z.union([Tag, z.array(Tag)]);
/** The keys that hold no expression, since other steps and views know the step by them. */
export const WrittenKeys = z.looseObject({
  id: z
    .string()
    .min(1)
    .max(200)
    .regex(/^\P{Cc}+$/u, "must be one line")
    .refine((id) => !id.includes("{{"), "must be written out: it holds no expression")
    .optional()
    .describe("The purpose in a few words; unique in the file."),
  require: Names.optional().describe("Names of earlier steps: if one of them failed, this step does not run."),
  onChanges: Names.optional().describe("Runs only if one of the named steps changed something."),
  restartOn: Names.optional().describe(
    "If one of the named steps changed something, the reaction of this step follows.",
  ),
  onFailure: Names.optional().describe("Runs only if one of the named steps failed."),
  register: z
    .string()
    .regex(/^[A-Za-z_][A-Za-z0-9_]*$/, "must be letters, digits and “_”, written out")
    .optional()
    .describe("Later expressions see the result of the step as steps.NAME."),
  tags: Tags.optional().describe("A word or a list of words, by which --tags chooses the step."),
});

function checkShape(node: SourceMap, problems: Problems): void {
  const written = Object.fromEntries(
    Object.keys(WrittenKeys.shape).flatMap((key) => {
      const value = node.get(key);
      return value === undefined ? [] : [[key, plainScalars(value)]];
    }),
  );
  problems.add(...problemsOf(written, node, WrittenKeys));
  for (const { scalar } of shellSources(ValueKeys, node, {}))
    problems.add(...(problems.attempt(() => unquotedProblems(scalar)) ?? []));
}

function plainScalars(node: SourceNode): unknown {
  if (node.kind === "scalar") return node.value;
  return node.kind === "list" ? node.items.map(plainScalars) : {};
}

function stringIn(node: SourceNode | undefined): string | undefined {
  return node?.kind === "scalar" && typeof node.value === "string" ? node.value : undefined;
}

function unknownKey(key: string, at: SourcePosition, known: readonly string[]): Problem {
  const hint = suggestHint(key, known, `step keys are ${known.join(", ")}; modules have a dot: file.managed`);
  return {
    code: "YAML_KEY_UNKNOWN",
    message: `no step key or module “${key}”`,
    at,
    hint,
  };
}

function invalid(message: string, at: SourcePosition, hint?: string): Problem {
  return { code: "STATE_STEP_INVALID", message, at, hint };
}
