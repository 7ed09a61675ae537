import { stepsOf, workloads } from "#support/workload.ts";
import type { Lines } from "./lines.ts";
import type { Exact, Name, Phase } from "./results.ts";
import { contenderOf, perform, round } from "./rounds.ts";
import type { Scene } from "./scene.ts";

/**
 * Counts a contender's processes on a node and bytes to it, which do not depend on time. The scene has one node, behind
 * a line.
 */
export async function countExactly(scene: Scene, lines: Lines, name: Name): Promise<Exact> {
  const small = await countWork(scene, lines, name);
  const twice = workloads[scene.name](2);
  const large = await countWork({ ...scene, work: twice }, lines, name);
  const perChange = (large.processes.A - small.processes.A) / (stepsOf(twice) - stepsOf(scene.work));
  return { work: scene.name, contender: name, ...small, perChange: round(perChange) };
}

async function countWork(scene: Scene, lines: Lines, name: Name) {
  const contender = contenderOf(name, scene);
  contender.reset();
  const count = async (phase: Phase) => {
    const before = await lines.bytesUp();
    const processes = await scene.targets.countStarts(() => perform(scene, contender, phase));
    return { processes, bytes: (await lines.bytesUp()) - before };
  };
  const [a, b] = [await count("A"), await count("B")];
  return { processes: { A: a.processes, B: b.processes }, bytes: { A: a.bytes, B: b.bytes } };
}
