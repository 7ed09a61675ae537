/** The value that nine of ten do not exceed; undefined for an empty list. */
export function ninthOfTen(values: readonly number[]): number | undefined {
  return quantile(values, 0.9);
}

/** The value that half of them do not exceed; undefined for an empty list. */
export function median(values: readonly number[]): number | undefined {
  return quantile(values, 0.5);
}

/** The value that so large a share of them, 0 to 1, does not exceed; undefined for an empty list. */
export function quantile(values: readonly number[], share: number): number | undefined {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.max(0, Math.ceil(sorted.length * share) - 1)];
}
