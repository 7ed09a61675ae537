import { KcoreError } from "#errors/problem.ts";
import { nodeAt, type SourceNode } from "#engine/yaml/node.ts";
import { type BlockStatement, type Call, argumentsOf, type Expression, type Program } from "./ast.ts";
import { mayHoldExpression, templateOfScalar } from "./expression.ts";
import { printed } from "./helper.ts";
import { Interpreter } from "./interpret.ts";
import { referencesOf } from "./references.ts";
import type { Scope } from "./scope.ts";

/** The expression whose value depends on a node's answer, with its scope; undefined for the answer itself. */
export type UntrustedSource = { readonly node: SourceNode; readonly scope: () => Scope } | undefined;

/** Key of a scope's untrusted paths besides facts and steps: `params.x`, `stages.x`, `item`. No expression can name a symbol. */
const untrusted = Symbol("untrusted");
type UntrustedScope = Scope & { readonly [untrusted]?: ReadonlyMap<string, UntrustedSource> };

/** The scope, with these paths marked as dependent on nodes' answers. */
export function withUntrusted(scope: Scope, paths: Iterable<readonly [string, UntrustedSource]>): Scope {
  const marked: UntrustedScope = { ...scope, [untrusted]: new Map(paths) };
  return marked;
}

/** Whether the value depends on a node's answer. */
export function isUntrustedValue(value: SourceNode, scope: Scope): boolean {
  return referencesOf(value).paths.some((path) => isNodeAnswer(path, scope));
}

/**
 * Refuses a name of a file on the bastion that a node decides (S-4). A fact or a step's output may be the key of a lookup, or a part of the
 * name that cannot leave its folder: `files/{{facts.os.id}}.conf`. @throws KcoreError EXPRESSION_TYPE
 */
export function refuseUntrustedName(name: SourceNode, scope: Scope): void {
  const pieces = piecesOf(name, scope);
  const parts = pieces.filter(({ isUntrusted }) => isUntrusted);
  const isWritten = pieces.some(({ text, isUntrusted }) => !isUntrusted && /\w/.test(text));
  if (parts.length === 0 || (isWritten && parts.every(({ text }) => /^\w[\w.+-]*$/.test(text)))) return;
  throw new KcoreError({
    code: "EXPRESSION_TYPE",
    message: "a node's answer must not name a file of the bastion",
    at: name.at,
    hint: "choose by it: {{lookup params.files facts.os.id}}, or {{#if (eq facts.os.id 'debian')}}…{{/if}}",
  });
}

interface Piece {
  readonly text: string;
  readonly isUntrusted: boolean;
}

/** The pieces of a text; for a parameter, the pieces of the value given for the parameter. */
function piecesOf(node: SourceNode, scope: Scope): readonly Piece[] {
  if (node.kind !== "scalar") return [];
  const { value: text } = node;
  if (typeof text !== "string" || !mayHoldExpression(text)) return [{ text: String(text), isUntrusted: false }];
  const template = templateOfScalar(node);
  const calls = new Set(answersIn(template.program, scope, "top"));
  const pieces: Piece[] = [];
  const value = (given: unknown, call: Call): void => {
    const piece = { text: printed(given) ?? "", isUntrusted: calls.has(call) };
    const inner = piece.isUntrusted ? givenPieces(call, scope) : [];
    // Inside a block the same name may mean another value, whose text differs.
    pieces.push(...(inner.map((one) => one.text).join("") === piece.text && piece.text !== "" ? inner : [piece]));
  };
  new Interpreter(template).into({ text: (part) => pieces.push({ text: part, isUntrusted: false }), value }, scope);
  return pieces;
}

function givenPieces({ path, params }: Call, scope: Scope): readonly Piece[] {
  if (path.type !== "PathExpression" || params.length > 0) return [];
  const length = path.parts[0] === "item" ? 1 : 2;
  const source = (scope as UntrustedScope)[untrusted]?.get(path.parts.slice(0, length).join("."));
  const node = source && nodeAt(source.node, path.parts.slice(length));
  return source && node ? piecesOf(node, source.scope()) : [];
}

/** Where an expression stands: at the top, in an `each` or `with` block, or in such a block over a node's answer. */
type Place = "top" | "into" | "untrusted";

function* answersIn({ body }: Program, scope: Scope, place: Place): Generator<Call> {
  for (const statement of body) {
    if (statement.type === "MustacheStatement" && isUntrustedCall(statement, scope, place)) yield statement;
    if (statement.type !== "BlockStatement") continue;
    const inner = placeWithin(statement, scope, place);
    if (statement.program) yield* answersIn(statement.program, scope, inner);
    if (statement.inverse) yield* answersIn(statement.inverse, scope, place);
  }
}

function placeWithin({ path, params }: BlockStatement, scope: Scope, place: Place): Place {
  const isInto = path.type === "PathExpression" && (path.original === "each" || path.original === "with");
  if (!isInto || place === "untrusted") return place;
  return params.some((one) => isUntrustedAt(one, scope, place)) ? "untrusted" : "into";
}

function isUntrustedCall(call: Call, scope: Scope, place: Place): boolean {
  const { path, params } = call;
  const all = [...argumentsOf(call)];
  if (all.length === 0) return isUntrustedAt(path, scope, place);
  const isLookup = path.type === "PathExpression" && path.original === "lookup";
  return (isLookup ? params.slice(0, 1) : all).some((one) => isUntrustedAt(one, scope, place));
}

function isUntrustedAt(expression: Expression, scope: Scope, place: Place): boolean {
  if (expression.type === "SubExpression") return isUntrustedCall(expression, scope, place);
  if (expression.type !== "PathExpression") return false;
  const { parts, data, depth } = expression;
  if (place === "untrusted") return true;
  if (data) return parts[0] === "root" && isNodeAnswer(parts.slice(1), scope);
  return parts.length === 0 ? place === "top" || depth > 0 : isNodeAnswer(parts, scope);
}

function isNodeAnswer([root, name]: readonly string[], scope: Scope): boolean {
  if (root === undefined || root === "facts" || root === "steps") return true;
  const paths = [...((scope as UntrustedScope)[untrusted]?.keys() ?? [])];
  return paths.some(
    (path) => path === root || (name === undefined ? path.startsWith(`${root}.`) : path === `${root}.${name}`),
  );
}
