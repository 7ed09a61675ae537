import { median, PseudoTerminal } from "./pseudo-terminal.ts";

/** From the start of the command to the run's first picture. */
export async function measureStartUp(project: string, rounds = 9) {
  const figures: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const terminal = new PseudoTerminal(project, ["state", "apply", "nothing", "--on", "here", "--output", "ink"]);
    await terminal.waitFor(/\[\?1049h[^]*state apply nothing/);
    // The first one fills the caches.
    if (round > 0) figures.push(performance.now() - terminal.started);
    await terminal.end();
  }
  return { rounds, median: median(figures), best: Math.min(...figures), worst: Math.max(...figures) };
}
