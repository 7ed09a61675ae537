/** What `--state` takes. */
export const runStates: readonly string[] = [
  "running",
  "waiting",
  "stopping",
  "done",
  "failed",
  "unreachable",
  "interrupted",
  "refused",
  "died",
];
