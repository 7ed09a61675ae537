/** A grant: a disk, the fingerprint of its contents (or `restore` for a saved table), and optionally its only node. */
export const grantPattern = /^(.+:(?:[0-9a-f]{16}|restore))(?:@([A-Za-z0-9._-]+))?$/s;

/** The grants for a node, without their `@NODE`. */
export function grantsOf(node: string, grants: readonly string[]): readonly string[] {
  return grants.flatMap((grant) => {
    const [, own = grant, of = node] = grantPattern.exec(grant) ?? [];
    return of === node ? [own] : [];
  });
}
