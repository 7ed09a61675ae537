import { useOf } from "#support/process-use.ts";
import { median, PseudoTerminal } from "./pseudo-terminal.ts";

/** The time and the view's CPU from the start of the command to the run's first picture. */
export async function measureStartUp(project: string, rounds = 9) {
  const figures: number[] = [];
  const work: number[] = [];
  for (let round = 0; round <= rounds; round++) {
    const terminal = new PseudoTerminal(project, ["state", "apply", "nothing", "--on", "here", "--output", "ink"]);
    await terminal.waitFor(/\[\?1049h[^]*state apply nothing/);
    const took = performance.now() - terminal.started;
    const cpu = useOf(await terminal.view()).cpuMs;
    // The first one fills the caches.
    if (round > 0) {
      figures.push(took);
      work.push(cpu);
    }
    await terminal.end();
  }
  return { rounds, median: median(figures), best: Math.min(...figures), cpu: median(work) };
}
