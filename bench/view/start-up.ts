import { cpuOf, median, PseudoTerminal } from "./pseudo-terminal.ts";

/** From the start of the command to the run's first picture. */
export async function measureStartUp(project: string, rounds = 9) {
  const figures: number[] = [];
  const work: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const terminal = new PseudoTerminal(project, ["state", "apply", "nothing", "--on", "here", "--output", "ink"]);
    await terminal.waitFor(/\[\?1049h[^]*state apply nothing/);
    const took = performance.now() - terminal.started;
    const cpu = cpuOf(await terminal.view()) * 1000;
    // The first one fills the caches.
    if (round > 0) {
      figures.push(took);
      work.push(cpu);
    }
    await terminal.end();
  }
  return {
    rounds,
    median: median(figures),
    best: Math.min(...figures),
    worst: Math.max(...figures),
    cpu: median(work),
  };
}
