import { KcoreError } from "#errors/problem.ts";
import { nodeAt, type SourceNode } from "#engine/yaml/node.ts";
import { type BlockStatement, type CallExpression, argumentsOf, type Expression, type Program } from "./ast.ts";
import { mayHoldExpression, templateOfScalar } from "./expression.ts";
import { scalarText } from "./helper.ts";
import { Interpreter } from "./interpret.ts";
import { referencesOf } from "./references.ts";
import type { Scope } from "./scope.ts";

/** The expression of a value that depends on a node's answer, with the expression's scope; undefined: the value is the answer. */
export type UntrustedSource = { readonly node: SourceNode; readonly scope: () => Scope } | undefined;

/** Key of a scope's untrusted paths besides facts and steps: `params.x`, `stages.x`, `item`. No expression can name a symbol. */
const untrustedPaths = Symbol("untrusted");
type UntrustedScope = Scope & { readonly [untrustedPaths]?: ReadonlyMap<string, UntrustedSource> };

/** The scope, with these paths marked as dependent on nodes' answers. */
export function withUntrusted(scope: Scope, paths: Iterable<readonly [string, UntrustedSource]>): Scope {
  const marked: UntrustedScope = { ...scope, [untrustedPaths]: new Map(paths) };
  return marked;
}

/** Whether the value depends on a node's answer. */
export function isUntrustedValue(value: SourceNode, scope: Scope): boolean {
  return referencesOf(value).paths.some((path) => isNodeAnswer(path, scope));
}

/**
 * Refuses a bastion file's name that a node decides (S-4). A fact or a step's output may be the key of a lookup, or a part of the
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

interface TextPiece {
  readonly text: string;
  readonly isUntrusted: boolean;
}

/** The pieces of a text. The pieces of a parameter are those of the value given for it. */
function piecesOf(node: SourceNode, scope: Scope): readonly TextPiece[] {
  if (node.kind !== "scalar") return [];
  const { value: text } = node;
  if (typeof text !== "string" || !mayHoldExpression(text)) return [{ text: String(text), isUntrusted: false }];
  const template = templateOfScalar(node);
  const calls = new Set(untrustedCalls(template.program, scope, "top"));
  const pieces: TextPiece[] = [];
  const value = (given: unknown, call: CallExpression): void => {
    const piece = { text: scalarText(given) ?? "", isUntrusted: calls.has(call) };
    const inner = piece.isUntrusted ? givenPieces(call, scope) : [];
    // Inside a block the same name may mean another value, whose text differs.
    pieces.push(...(inner.map((one) => one.text).join("") === piece.text && piece.text !== "" ? inner : [piece]));
  };
  new Interpreter(template).into({ text: (part) => pieces.push({ text: part, isUntrusted: false }), value }, scope);
  return pieces;
}

function givenPieces({ path, params }: CallExpression, scope: Scope): readonly TextPiece[] {
  if (path.type !== "PathExpression" || params.length > 0) return [];
  const length = path.parts[0] === "item" ? 1 : 2;
  const source = (scope as UntrustedScope)[untrustedPaths]?.get(path.parts.slice(0, length).join("."));
  const node = source && nodeAt(source.node, path.parts.slice(length));
  return source && node ? piecesOf(node, source.scope()) : [];
}

/** Where an expression stands: in no `each` or `with` block, in one, or in one over a node's answer. */
type BlockPosition = "top" | "into" | "untrusted";

function* untrustedCalls({ body }: Program, scope: Scope, position: BlockPosition): Generator<CallExpression> {
  for (const statement of body) {
    if (statement.type === "MustacheStatement" && isUntrustedCall(statement, scope, position)) yield statement;
    if (statement.type !== "BlockStatement") continue;
    const inner = positionWithin(statement, scope, position);
    if (statement.program) yield* untrustedCalls(statement.program, scope, inner);
    if (statement.inverse) yield* untrustedCalls(statement.inverse, scope, position);
  }
}

function positionWithin({ path, params }: BlockStatement, scope: Scope, position: BlockPosition): BlockPosition {
  const isInto = path.type === "PathExpression" && (path.original === "each" || path.original === "with");
  if (!isInto || position === "untrusted") return position;
  return params.some((one) => isUntrustedAt(one, scope, position)) ? "untrusted" : "into";
}

function isUntrustedCall(call: CallExpression, scope: Scope, position: BlockPosition): boolean {
  const { path, params } = call;
  const all = [...argumentsOf(call)];
  if (all.length === 0) return isUntrustedAt(path, scope, position);
  const isLookup = path.type === "PathExpression" && path.original === "lookup";
  return (isLookup ? params.slice(0, 1) : all).some((one) => isUntrustedAt(one, scope, position));
}

function isUntrustedAt(expression: Expression, scope: Scope, position: BlockPosition): boolean {
  if (expression.type === "SubExpression") return isUntrustedCall(expression, scope, position);
  if (expression.type !== "PathExpression") return false;
  const { parts, data, depth } = expression;
  if (position === "untrusted") return true;
  if (data) return parts[0] === "root" && isNodeAnswer(parts.slice(1), scope);
  return parts.length === 0 ? position === "top" || depth > 0 : isNodeAnswer(parts, scope);
}

function isNodeAnswer([root, name]: readonly string[], scope: Scope): boolean {
  if (root === undefined || root === "facts" || root === "steps") return true;
  const paths = [...((scope as UntrustedScope)[untrustedPaths]?.keys() ?? [])];
  return paths.some(
    (path) => path === root || (name === undefined ? path.startsWith(`${root}.`) : path === `${root}.${name}`),
  );
}
