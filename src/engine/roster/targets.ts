import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { NodeEntry, Roster } from "./roster.ts";
import { matchesGlob, matchPattern } from "./patterns.ts";
import { parseTargets, type Target, type TargetTerm } from "./target-syntax.ts";

/**
 * The nodes that a target expression matches, in the roster's order: names and globs, `role:`, `dc:`, `group:`,
 * `label:k=v`, `/regex/`, `and`, `or`, `not`, parentheses; a comma means `or`. `at`: where the expression begins in a
 * file, if it comes from one. Nothing matched is an error, never “all” (S-25).
 * @throws KcoreError TARGET_SYNTAX, TARGET_UNKNOWN, TARGET_EMPTY
 */
export function matchTargets(
  expression: string | readonly string[],
  roster: Roster,
  at?: SourcePosition,
): readonly NodeEntry[] {
  const text = typeof expression === "string" ? expression : expression.join(",");
  const target = parseTargets(text, at);
  const nodes = [...roster.nodes.values()];
  checkNames(target, { text, nodes, at });
  const names = nodes.map(({ name }) => name);
  const matched = nodes.filter(matcherOf(target, names, { text, at }));
  if (matched.length > 0) return matched;
  throw new KcoreError({
    code: "TARGET_EMPTY",
    message: `no node matches “${text}”`,
    at,
    hint: listOf(nodes),
  });
}

interface Given {
  readonly text: string;
  readonly at: SourcePosition | undefined;
}

/** Whether a node is meant; regular expressions are matched against all names at once, since that is bounded as one. */
function matcherOf(target: Target, names: readonly string[], given: Given): (node: NodeEntry) => boolean {
  switch (target.kind) {
    case "or":
    case "and": {
      const parts = target.parts.map((part) => matcherOf(part, names, given));
      return target.kind === "or"
        ? (node) => parts.some((matches) => matches(node))
        : (node) => parts.every((matches) => matches(node));
    }
    case "not": {
      const matches = matcherOf(target.part, names, given);
      return (node) => !matches(node);
    }
    case "regex": {
      const found = new Set(matchPattern(target.pattern, names, (message) => targetProblem(message, target, given)));
      return ({ name }) => found.has(name);
    }
    default:
      return (node) => matchesTerm(target, node);
  }
}

function matchesTerm({ kind, value }: TargetTerm, node: NodeEntry): boolean {
  switch (kind) {
    case "name":
      return matchesGlob(value, node.name);
    case "role":
      return node.roles.some((role) => matchesGlob(value, role));
    case "dc":
      return matchesGlob(value, node.dc);
    case "group":
      return node.groups.some((group) => matchesGlob(value, group));
    case "label": {
      const [key, wanted] = splitLabel(value);
      const label = Object.hasOwn(node.labels, key) ? node.labels[key] : undefined;
      return label !== undefined && (wanted === undefined || matchesGlob(wanted, label));
    }
  }
}

function splitLabel(value: string): [string, string | undefined] {
  const at = value.indexOf("=");
  return at === -1 ? [value, undefined] : [value.slice(0, at), value.slice(at + 1)];
}

/** A name without a wildcard means this node: if there is none, it was mistyped, also behind `not`. */
function checkNames(target: Target, given: Given & { readonly nodes: readonly NodeEntry[] }): void {
  if (target.kind === "or" || target.kind === "and") for (const part of target.parts) checkNames(part, given);
  else if (target.kind === "not") checkNames(target.part, given);
  else if (target.kind === "name" && !/[*?[]/.test(target.value)) {
    const names = given.nodes.map(({ name }) => name);
    if (names.includes(target.value)) return;
    const hint = suggestHint(target.value, names, listOf(given.nodes));
    throw targetProblem(`no node “${target.value}” in the roster`, target, given, { code: "TARGET_UNKNOWN", hint });
  }
}

/** An error at a part of the expression: underlined in its file, or shown below with an arrow. */
export function targetProblem(
  message: string,
  { start, end }: { readonly start: number; readonly end: number },
  { text, at }: Given,
  {
    code = "TARGET_SYNTAX",
    hint,
  }: { readonly code?: "TARGET_SYNTAX" | "TARGET_UNKNOWN"; readonly hint?: string | undefined } = {},
): KcoreError {
  const length = Math.max(1, end - start);
  return new KcoreError({
    code,
    message,
    ...(at && { at: { ...at, column: at.column + start, length } }),
    hint,
    ...(at === undefined && { detail: `${text}\n${" ".repeat(start)}${"^".repeat(length)}` }),
  });
}

function listOf(nodes: readonly NodeEntry[]): string {
  if (nodes.length === 0) return "the roster holds no node yet: kcore roster add NAME --address ADDRESS";
  const names = nodes.map(({ name, roles }) => (roles.length === 0 ? name : `${name} (${roles.join(", ")})`));
  return `the roster holds ${names.slice(0, 20).join(", ")}${names.length > 20 ? ` and ${names.length - 20} more` : ""}`;
}
