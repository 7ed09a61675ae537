/** A disk by its name, what it holds (or that what was saved of it may come back), and the node where it is of one alone. */
export const grantPattern = /^(.+:(?:[0-9a-f]{16}|restore))(?:@([A-Za-z0-9._-]+))?$/s;

/** Of these grants those of a node, as the node takes them: one that ends with `@NODE` is of that node alone. */
export function grantsOf(node: string, grants: readonly string[]): readonly string[] {
  return grants.flatMap((grant) => {
    const [, own = grant, of = node] = grantPattern.exec(grant) ?? [];
    return of === node ? [own] : [];
  });
}
