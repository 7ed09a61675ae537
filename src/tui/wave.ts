/** A stage's name as its file has it: from the second wave on its id ends in `@2`, `@3` …, as does that of a state given twice. */
export function withoutWave(stage: string): string {
  return stage.replace(/@\d+$/, "");
}
