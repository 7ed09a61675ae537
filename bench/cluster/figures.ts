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

export function median(times: number, measure: () => number): number {
  return quantile(Array.from({ length: times }, measure), 0.5);
}

export function quantile(values: readonly number[], share: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? Number.NaN;
}

export function ratio(value: number): string {
  return `${value.toFixed(value < 10 ? 2 : 0)}×`;
}
