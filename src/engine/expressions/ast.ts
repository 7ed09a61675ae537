// The parts of Handlebars' syntax tree that are read here (handlebars, docs/compiler-api.md).

export interface Loc {
  /** Lines count from 1, columns from 0. */
  readonly start: { readonly line: number; readonly column: number };
  readonly end: { readonly line: number; readonly column: number };
}

export interface Program {
  readonly type: "Program";
  readonly body: readonly TemplateStatement[];
  readonly blockParams?: readonly string[];
}

export type TemplateStatement =
  | { readonly type: "ContentStatement"; readonly value: string; readonly loc: Loc }
  | { readonly type: "CommentStatement"; readonly loc: Loc }
  | MustacheStatement
  | BlockStatement
  | PartialStatement
  | { readonly type: "PartialBlockStatement" | "Decorator" | "DecoratorBlock"; readonly loc: Loc };

export interface CallExpression {
  readonly path: Expression;
  readonly params: readonly Expression[];
  readonly hash?: Hash;
  readonly loc: Loc;
}

export interface MustacheStatement extends CallExpression {
  readonly type: "MustacheStatement";
}

export interface BlockStatement extends CallExpression {
  readonly type: "BlockStatement";
  readonly program?: Program;
  readonly inverse?: Program;
}

export interface PartialStatement {
  readonly type: "PartialStatement";
  readonly name: Expression;
  readonly params: readonly Expression[];
  readonly hash?: Hash;
  readonly indent: string;
  readonly loc: Loc;
}

export interface Hash {
  readonly pairs: readonly { readonly key: string; readonly value: Expression; readonly loc: Loc }[];
}

export interface SubExpression extends CallExpression {
  readonly type: "SubExpression";
}

export interface PathExpression {
  readonly type: "PathExpression";
  readonly data: boolean;
  readonly depth: number;
  readonly parts: readonly string[];
  readonly original: string;
  readonly loc: Loc;
}

export type Expression =
  | SubExpression
  | PathExpression
  | { readonly type: "StringLiteral"; readonly value: string; readonly loc: Loc }
  | { readonly type: "NumberLiteral"; readonly value: number; readonly loc: Loc }
  | { readonly type: "BooleanLiteral"; readonly value: boolean; readonly loc: Loc }
  | { readonly type: "NullLiteral" | "UndefinedLiteral"; readonly loc: Loc };

/** The arguments of a call, positional and named. */
export function* argumentsOf(call: {
  readonly params: readonly Expression[];
  readonly hash?: Hash;
}): Generator<Expression> {
  yield* call.params;
  for (const { value } of call.hash?.pairs ?? []) yield value;
}
