import type { z } from "zod";
import type { Problem } from "#errors/problem.ts";
import { problemOfIssue } from "./issues.ts";
import { plainOf, type SourceNode } from "./node.ts";
import { Problems } from "./problems.ts";

/**
 * Checks a tree without expressions against a schema and gives the schema's output.
 * @throws KcoreError with every problem: unknown keys at the key, with a suggestion; wrong values at the value.
 */
export function validate<Schema extends z.ZodType>(node: SourceNode, schema: Schema): z.output<Schema> {
  return validateValue(plainOf(node), node, schema);
}

/**
 * Checks a value that was made from `node` (its expressions evaluated); places are those of `node`.
 * @throws KcoreError with every problem.
 */
export function validateValue<Schema extends z.ZodType>(
  value: unknown,
  node: SourceNode,
  schema: Schema,
): z.output<Schema> {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const problems = new Problems();
  problems.add(...problemsOf(value, node, schema));
  problems.throwIfAny();
  throw result.error;
}

/** The problems {@link validateValue} would throw. */
export function problemsOf(value: unknown, node: SourceNode, schema: z.ZodType): readonly Problem[] {
  const result = schema.safeParse(value);
  return result.success ? [] : result.error.issues.flatMap((issue) => problemOfIssue(issue, { node, schema, value }));
}
