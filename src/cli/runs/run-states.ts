/** What `--state` takes. */
export const runStates: readonly string[] = [
  "running",
  "stopping",
  "done",
  "failed",
  "unreachable",
  "interrupted",
  "refused",
  "died",
];
