import { KcoreError, type SourcePosition } from "#errors/problem.ts";
import { suggestHint } from "#errors/suggest.ts";
import type { NodeEntry, Roster, TargetFacts } from "./roster.ts";
import { matchesGlob, matchPattern } from "./patterns.ts";
import { parseTargets, type Target, type TargetTerm } from "./target-syntax.ts";

/**
 * The nodes that a target expression matches, in the roster's order: names and globs, `role:`, `dc:`, `group:`,
 * `label:k=v`, `fact:NAME=VALUE`, `/regex/`, `and`, `or`, `not`, parentheses; a comma means `or`. `at`: where the expression
 * begins in a file, if it comes from one. No match is an error, never “all” (S-25). A node whose match depends on unknown
 * facts is an error, too, unless `roster.facts` skips such nodes.
 * @throws KcoreError TARGET_SYNTAX, TARGET_UNKNOWN, TARGET_EMPTY, TARGET_FACTS_UNKNOWN
 */
export function matchTargets(
  expression: string | readonly string[],
  roster: Roster,
  at?: SourcePosition,
): readonly NodeEntry[] {
  const text = expressionText(expression);
  const nodes = [...roster.nodes.values()];
  const matches = matcherFor(text, roster, at);
  const undecided = roster.facts?.skipUnknown ? [] : nodes.filter((node) => matches(node) === undefined);
  if (undecided.length > 0) throw factsUnknown(undecided, text, at);
  const matched = nodes.filter((node) => matches(node) === true);
  if (matched.length > 0) return matched;
  throw new KcoreError({
    code: "TARGET_EMPTY",
    message: `no node matches “${text}”`,
    at,
    hint: /\blabel:/.test(text)
      ? `label: means labels of the roster; kcore node label writes the cluster's alone: kcore get nodes -l KEY=VALUE`
      : listOf(nodes),
  });
}

/** The nodes whose match depends on facts. @throws KcoreError TARGET_SYNTAX, TARGET_UNKNOWN */
export function nodesNeedingFacts(expression: string | readonly string[], roster: Roster): readonly NodeEntry[] {
  const matches = matcherFor(expressionText(expression), { nodes: roster.nodes });
  return [...roster.nodes.values()].filter((node) => matches(node) === undefined);
}

function expressionText(expression: string | readonly string[]): string {
  return typeof expression === "string" ? expression : expression.join(",");
}

/** Whether a target selects a node; undefined if that depends on an unknown fact. */
type NodeMatcher = (node: NodeEntry) => boolean | undefined;

interface MatchInput {
  readonly text: string;
  readonly at: SourcePosition | undefined;
  readonly names: readonly string[];
  readonly facts: TargetFacts | undefined;
}

function matcherFor(
  text: string,
  { nodes, facts }: Pick<Roster, "nodes"> & { readonly facts?: TargetFacts | undefined },
  at?: SourcePosition,
): NodeMatcher {
  const target = parseTargets(text, at);
  checkNodeNames(target, { text, nodes: [...nodes.values()], at });
  return matcherOf(target, { text, at, names: [...nodes.keys()], facts });
}

/** Matches a regular expression against all names at once, under one time limit, and reads all nodes' facts at once. */
function matcherOf(target: Target, input: MatchInput): NodeMatcher {
  const { names, facts } = input;
  switch (target.kind) {
    case "or":
    case "and": {
      const parts = target.parts.map((part) => matcherOf(part, input));
      const deciding = target.kind === "or";
      return (node) => combineMatches(parts, node, deciding);
    }
    case "not": {
      const inner = matcherOf(target.part, input);
      return (node) => {
        const isMatch = inner(node);
        return isMatch === undefined ? undefined : !isMatch;
      };
    }
    case "fact": {
      const known = facts?.matches(target, names) ?? new Map<string, boolean>();
      return ({ name }) => known.get(name);
    }
    case "regex": {
      const found = new Set(matchPattern(target.pattern, names, (message) => targetProblem(message, target, input)));
      return ({ name }) => found.has(name);
    }
    default:
      return (node) => matchesTerm(target, node);
  }
}

/** Three-valued `and` and `or`: a part equal to `deciding` decides; otherwise an unknown part makes the result unknown. */
function combineMatches(parts: readonly NodeMatcher[], node: NodeEntry, deciding: boolean): boolean | undefined {
  let isUnknown = false;
  for (const part of parts) {
    const isMatch = part(node);
    if (isMatch === deciding) return deciding;
    isUnknown ||= isMatch === undefined;
  }
  return isUnknown ? undefined : !deciding;
}

function factsUnknown(nodes: readonly NodeEntry[], text: string, at: SourcePosition | undefined): KcoreError {
  const names = nodes.map(({ name }) => name);
  const shown = `${names.slice(0, 10).join(", ")}${names.length > 10 ? ` and ${names.length - 10} more` : ""}`;
  return new KcoreError({
    code: "TARGET_FACTS_UNKNOWN",
    message: `“${text}” asks for facts that are not known, or too old, of ${shown}`,
    at,
    hint: `kcore facts --on '${names.length > 50 ? "*" : names.join(",")}', or --refresh-facts; --unknown-facts skip leaves such nodes out`,
  });
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

/** Refuses a name without a wildcard that no node has: the name was mistyped, also behind `not`. */
function checkNodeNames(
  target: Target,
  given: Pick<MatchInput, "text" | "at"> & { readonly nodes: readonly NodeEntry[] },
): void {
  if (target.kind === "or" || target.kind === "and") for (const part of target.parts) checkNodeNames(part, given);
  else if (target.kind === "not") checkNodeNames(target.part, given);
  else if (target.kind === "name" && !/[*?[]/.test(target.value)) {
    const names = given.nodes.map(({ name }) => name);
    if (names.includes(target.value)) return;
    const hint = suggestHint(target.value, names, listOf(given.nodes));
    throw targetProblem(`no node “${target.value}” in the roster`, target, given, { code: "TARGET_UNKNOWN", hint });
  }
}

/** An error at a part of the expression: underlined in its file, or with carets below the expression. */
export function targetProblem(
  message: string,
  { start, end }: { readonly start: number; readonly end: number },
  { text, at }: Pick<MatchInput, "text" | "at">,
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
