import type { z } from "zod";

/** The keys that a schema knows for the map at `path`, for suggestions; empty if any key is allowed. */
export function keysAt(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let found: readonly Definition[] = unwrap(schema);
  for (const part of path) found = found.flatMap((definition) => childrenOf(definition, part)).flatMap(unwrap);
  return [...new Set(found.flatMap(({ type, shape }) => (type === "object" ? Object.keys(shape ?? {}) : [])))];
}

/** The description of the nearest schema on the way to `path` that has one. */
export function descriptionAt(schema: z.ZodType, path: readonly PropertyKey[]): string | undefined {
  let description = schema.description;
  let found: readonly Definition[] = unwrap(schema);
  for (const part of path) {
    const children = found.flatMap((definition) => childrenOf(definition, part));
    description = children.find((child) => child.description !== undefined)?.description ?? description;
    found = children.flatMap(unwrap);
  }
  return description;
}

/** The parts of zod's definitions that lead to other schemas (zod 4, `_zod.def`). */
interface Definition {
  readonly type: string;
  readonly shape?: Readonly<Record<string, z.ZodType>>;
  readonly innerType?: z.ZodType;
  readonly element?: z.ZodType;
  readonly valueType?: z.ZodType;
  readonly options?: readonly z.ZodType[];
  readonly left?: z.ZodType;
  readonly right?: z.ZodType;
  readonly in?: z.ZodType;
  readonly out?: z.ZodType;
  readonly items?: readonly z.ZodType[];
  readonly getter?: () => z.ZodType;
  /** The schema of an object's other keys. */
  readonly catchall?: z.ZodType;
}

export function definitionOf(schema: z.core.$ZodType): Definition {
  return schema._zod.def as unknown as Definition;
}

/** Looks through optional, default, union, pipe and the like. */
function unwrap(schema: z.ZodType): readonly Definition[] {
  const definition = definitionOf(schema);
  const { innerType, options, left, right, getter } = definition;
  if (innerType !== undefined) return unwrap(innerType);
  if (options !== undefined) return options.flatMap(unwrap);
  if (left !== undefined && right !== undefined) return [...unwrap(left), ...unwrap(right)];
  if (definition.type === "pipe")
    return [definition.in, definition.out].flatMap((side) => (side === undefined ? [] : unwrap(side)));
  return getter === undefined ? [definition] : unwrap(getter());
}

function childrenOf({ shape, element, valueType, items }: Definition, part: PropertyKey): z.ZodType[] {
  const child = shape?.[String(part)] ?? element ?? valueType ?? items?.[Number(part)];
  return child === undefined ? [] : [child];
}
