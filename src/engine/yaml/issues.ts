import type { z } from "zod";
import type { Problem, SourcePosition } from "#errors/problem.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import { suggestHint } from "#errors/suggest.ts";
import { describeValue, nodeAt, type SourceMap, type SourceNode } from "./node.ts";
import { keysAt } from "./schema-keys.ts";

type Issue = z.core.$ZodIssue;

/** The subject of an issue: the node, the value made of it, and the schema. */
export interface CheckedValue {
  readonly node: SourceNode;
  readonly value: unknown;
  readonly schema: z.ZodType;
}

/** A zod issue as a problem in kcore's words, at its place; several problems for several unknown keys. */
export function problemOfIssue(issue: Issue, checked: CheckedValue): Problem[] {
  if (issue.code === "unrecognized_keys") {
    const { path, keys } = issue;
    const where = path.length === 0 ? {} : { where: `in ${subjectOf(path)}` };
    const known = keysAt(checked.schema, path);
    return keys.map((key) => unknownKey(key, keyPlaceOf(checked.node, path, key), known, where));
  }
  if (issue.code === "invalid_key") return [wrongKey(issue, checked.node)];
  if (issue.code === "invalid_union") return [...unionProblems(issue, checked)];
  const given = valueAt(checked.value, issue.path);
  if (given === undefined) return [missing(issue, checked)];
  const at = placeOf(checked.node, issue.path);
  const subject = subjectOf(issue.path);
  const message = `${subject} ${predicateOf(issue, given)}`;
  // The schema of a reference to a secret sets this code: the line may hold the secret itself.
  if (issue.code === "custom" && issue.params?.["code"] === "SECRET_LITERAL")
    return [{ code: "SECRET_LITERAL", message, at, hint: "then change the secret: it was in a file", conceal: true }];
  if (issue.code === "custom" && issue.params?.["conceal"] === true)
    return [{ code: "YAML_TYPE", message, at, conceal: true }];
  // The message of a rule over a whole map or list needs no subject.
  if (issue.code === "custom" && typeof given === "object") return [{ code: "YAML_TYPE", message: issue.message, at }];
  return [{ code: "YAML_TYPE", message, at, ...hintFor(issue, given, checked) }];
}

/** The problem of a key whose form a map's schema refuses. */
function wrongKey({ path, issues, message }: Extract<Issue, { code: "invalid_key" }>, node: SourceNode): Problem {
  const [parent, key] = [path.slice(0, -1), String(path.at(-1))];
  const why = issues[0] ? predicateOf(issues[0], key) : message;
  return {
    code: "YAML_TYPE",
    message: `“${key}” in ${subjectOf(parent)} ${why}`,
    at: keyPlaceOf(node, parent, key),
  };
}

function keyPlaceOf(node: SourceNode, path: readonly PropertyKey[], key: string): SourcePosition {
  const map = nodeAt(node, path);
  return (map?.kind === "map" ? map.entries.get(key)?.keyAt : undefined) ?? placeOf(node, path);
}

export function unknownKey(
  key: string,
  at: SourcePosition,
  known: readonly string[],
  { where = "here", hint = known.length === 0 ? undefined : `known here: ${known.join(", ")}` } = {},
): Problem {
  const message = `no key “${key}” is known ${where}`;
  return { code: "YAML_KEY_UNKNOWN", message, at, hint: suggestHint(key, known, hint) };
}

/** A problem for each unknown key of a map. */
export function unknownKeys(map: SourceMap, known: readonly string[], where?: string): Problem[] {
  return [...map.entries.values()]
    .filter(({ key }) => !known.includes(key))
    .map(({ key, keyAt }) => unknownKey(key, keyAt, known, omitUndefined({ where })));
}

function missing(issue: Issue, { node }: CheckedValue): Problem {
  const parent = issue.path.slice(0, -1);
  const name = String(issue.path.at(-1) ?? "a value");
  // A custom rule over several keys has no key of its own to miss.
  if (issue.code === "custom" && issue.path.length === 0)
    return { code: "YAML_TYPE", message: issue.message, at: node.at };
  if (issue.code === "custom")
    return { code: "YAML_TYPE", message: `“${name}” ${issue.message}`, at: placeOf(node, issue.path) };
  const where = parent.length === 0 ? "" : ` in ${subjectOf(parent)}`;
  return { code: "YAML_KEY_MISSING", message: `“${name}” is missing${where}`, at: placeOf(node, parent) };
}

/** The problems of the union's branch that matched furthest; if none matched at all, one problem with everything accepted. */
function* unionProblems(issue: Extract<Issue, { code: "invalid_union" }>, checked: CheckedValue): Generator<Problem> {
  const branches = issue.errors.map((issues) =>
    issues.map((inner) => ({ ...inner, path: [...issue.path, ...inner.path] }) as Issue),
  );
  const depth = (issues: readonly Issue[]): number =>
    Math.max(0, ...issues.map(({ path, code }) => path.length * 2 + (isOtherValue(code) ? 0 : 1)));
  const deepest = Math.max(0, ...branches.map(depth));
  const best = branches.find((issues) => depth(issues) === deepest);
  if (best !== undefined && deepest > issue.path.length * 2) {
    for (const inner of best) yield* problemOfIssue(inner, checked);
    return;
  }
  const given = valueAt(checked.value, issue.path);
  const wanted = [...new Set(branches.flat().map((inner) => expectedOf(inner)))].filter((text) => text !== "");
  const at = placeOf(checked.node, issue.path);
  if (given === undefined) yield missing(issue, checked);
  else
    yield {
      code: "YAML_TYPE",
      message: zodsOwn.test(issue.message)
        ? `${subjectOf(issue.path)} must be ${wanted.join(" or ")}, not ${describeValue(given)}`
        : `${subjectOf(issue.path)} ${issue.message}`,
      at,
    };
}

/** Whether an issue says only that the value is not of this branch. */
function isOtherValue(code: Issue["code"]): boolean {
  return code === "invalid_type" || code === "invalid_value";
}

/** zod's message where a schema has none of its own (its English locale). */
const zodsOwn = /^Invalid input/;

/** The message without its subject: “must be a text, not 5”. */
function predicateOf(issue: Issue, given: unknown): string {
  switch (issue.code) {
    case "invalid_type":
      if (!zodsOwn.test(issue.message)) return issue.message;
      return `must be ${expectedOf(issue)}, not ${typeof given === "number" ? given : describeValue(given)}`;
    case "invalid_value":
      return `must be ${expectedOf(issue)}`;
    case "too_small":
      return bounded(issue.origin, Number(issue.minimum), issue.inclusive === false ? "more than" : "at least");
    case "too_big":
      return bounded(issue.origin, Number(issue.maximum), issue.inclusive === false ? "less than" : "at most");
    default:
      return issue.message.charAt(0).toLowerCase() + issue.message.slice(1);
  }
}

function bounded(origin: string, limit: number, side: string): string {
  if (origin === "string")
    return limit === 1 && side === "at least" ? "must not be empty" : `must have ${side} ${limit} characters`;
  if (origin === "array" || origin === "set")
    return limit === 1 && side === "at least" ? "must not be empty" : `must have ${side} ${limit} items`;
  if (origin === "object" || origin === "record") return `must have ${side} ${limit} keys`;
  return `must be ${side} ${limit}`;
}

const EXPECTED: Readonly<Record<string, string>> = {
  string: "a text",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "a list",
  object: "a map",
  record: "a map",
  null: "nothing",
};

function expectedOf(issue: Issue): string {
  if (issue.code === "invalid_value")
    return issue.values.map((value) => (typeof value === "string" ? `“${value}”` : String(value))).join(" or ");
  if (issue.code !== "invalid_type") return issue.message.replace(/^must be /, "");
  const { expected } = issue;
  // `Text` of the modules is a text or a Secret, and YAML holds no Secret.
  if (expected === "custom" || (issue as { class?: unknown }).class === "Secret") return "";
  return EXPECTED[expected] ?? expected;
}

function hintFor(issue: Issue, given: unknown, { node }: CheckedValue): { hint?: string } {
  const child = nodeAt(node, issue.path);
  if (issue.code === "invalid_type" && (issue.expected === "object" || issue.expected === "record"))
    return omitUndefined({ hint: mapHint(child) });
  // “echo foo: bar” is a map with one key.
  if (issue.code === "invalid_type" && issue.expected === "string" && child?.kind === "map" && child.entries.size === 1)
    return { hint: `if it is one text, quote it: '${child.file.text.slice(child.start, child.end).trimEnd()}'` };
  const isPlainScalar = child?.kind === "scalar" && child.style === "plain" && child.source !== "";
  if (issue.code === "invalid_type" && issue.expected === "string" && typeof given !== "object" && isPlainScalar)
    // YAML reads “0o644” as an octal number; as a text the mode is “0644”.
    return { hint: `quote it: "${child.source.replace(/^0o(?=[0-7]+$)/, "0")}"` };
  if (issue.code === "invalid_value" && typeof given === "string") {
    const hint = suggestHint(given, issue.values.map(String));
    return hint === undefined ? {} : { hint };
  }
  return {};
}

/** The hint for a list, or a key without a blank after its colon, where a map is expected. */
export function mapHint(node: SourceNode | undefined): string | undefined {
  if (node?.kind === "scalar") {
    const [, key, value] = /^([\w.-]+):(\S.*)$/.exec(String(node.value)) ?? [];
    return key === undefined ? undefined : `a blank belongs behind the colon: “${key}: ${value}”`;
  }
  const first = node?.kind === "list" ? node.items[0] : undefined;
  if (node?.kind !== "list" || first?.kind !== "map") return undefined;
  const [entry] = first.entries.values();
  if (!entry) return undefined;
  return `without the dash, from column ${node.at.column} on: “${entry.key}: …”`;
}

/** “nodes.n1.port”, or “the value” at the top. */
function subjectOf(path: readonly PropertyKey[]): string {
  if (path.length === 0) return "the value";
  return `“${path.map((part, index) => (typeof part === "number" ? `[${part}]` : `${index === 0 ? "" : "."}${String(part)}`)).join("")}”`;
}

/** The place of the nearest written node: an issue below a missing key is shown at the map that lacks it. */
export function placeOf(node: SourceNode, path: readonly PropertyKey[]): SourcePosition {
  for (let length = path.length; length >= 0; length--) {
    const found = nodeAt(node, path.slice(0, length));
    if (found !== undefined) return found.at;
  }
  return node.at;
}

function valueAt(value: unknown, path: readonly PropertyKey[]): unknown {
  let found = value;
  for (const part of path) {
    if (found === null || typeof found !== "object" || !Object.hasOwn(found, part)) return undefined;
    found = (found as Record<PropertyKey, unknown>)[part];
  }
  return found;
}
