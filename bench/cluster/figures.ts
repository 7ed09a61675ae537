/** One line of a bench: a figure, its goal, and the figure of the peer. */
export interface Figure {
  readonly name: string;
  readonly value: string;
  readonly goal?: string;
  readonly note?: string;
}

export function printFigures(figures: readonly Figure[]): void {
  const width = Math.max(...figures.map(({ name }) => name.length));
  for (const { name, value, goal, note } of figures) {
    const aim = goal === undefined ? "" : `  goal ${goal}`;
    process.stdout.write(
      `${name.padEnd(width)}  ${value.padEnd(24)}${aim}${note === undefined ? "" : `  (${note})`}\n`,
    );
  }
}

/** The median of several results of `measure`. */
export function median(times: number, measure: () => number): number {
  const found = Array.from({ length: times }, () => measure()).toSorted((a, b) => a - b);
  return found[Math.floor(found.length / 2)] as number;
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function ratio(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)}×`;
}
