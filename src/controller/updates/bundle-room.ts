/** A bundle's file, whole or a part. */
export interface OnDisk {
  readonly sha256: string;
  readonly whole: boolean;
  readonly bytes: number;
  /** When it was written to last, ms since 1970. */
  readonly changed: number;
}

/** So much is kept of what no update names. */
const kept = { bundles: 4, bytes: 2 * 1024 * 1024 * 1024 } as const;

/**
 * What must go before another bundle comes, which counts as one of them: the oldest of those that no update names. Parts count as whole
 * ones do, so that uploads that nobody ends fill no disk.
 */
export function tooMany(
  all: readonly OnDisk[],
  { coming, isNeeded }: { readonly coming: string; readonly isNeeded: (sha256: string) => boolean },
): readonly OnDisk[] {
  const spare = all
    .filter(({ sha256 }) => sha256 !== coming && !isNeeded(sha256))
    .toSorted((a, b) => b.changed - a.changed);
  let bytes = 0;
  return spare.filter((one, index) => {
    bytes += one.bytes;
    return index >= kept.bundles - 1 || bytes > kept.bytes;
  });
}
