import { setTimeout as sleep } from "node:timers/promises";
import { rateOf, useOf } from "#support/process-use.ts";
import { recordBigRun } from "./big-recording.ts";
import { median, peakOf, PseudoTerminal } from "./pseudo-terminal.ts";

/** A large recording through the real view in a terminal: the CPU it takes, and how soon a key shows. */
export async function measureReplay(project: string, { nodes = 1000, steps = 30, seconds = 30 } = {}) {
  const id = "20261121-060000-beef";
  const events = await recordBigRun({ project, id, nodes, steps, length: seconds * 1000 });
  const terminal = new PseudoTerminal(project, ["runs", "replay", id, "--output", "ink"]);
  await terminal.waitFor(/deploy_node/);
  const pid = await terminal.view();
  await sleep(500);
  // Neither the loading of the record nor the first frame is measured.
  const before = useOf(pid);
  const keys: number[] = [];
  while (performance.now() - before.at < (seconds - 2) * 1000) {
    await sleep(1300 + Math.random() * 200);
    terminal.text = "";
    terminal.send("?");
    keys.push(await terminal.waitFor(/this help/));
    await sleep(150);
    terminal.send("?");
    await sleep(50);
    terminal.send("j");
  }
  const share = rateOf(before).percent / 100;
  const peak = peakOf(pid);
  terminal.send("q");
  await terminal.end();
  return { nodes, steps, seconds, events, share, keyMedian: median(keys), keyWorst: Math.max(...keys), peak };
}
