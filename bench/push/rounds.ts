import { readFileSync } from "node:fs";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { descendantsOf } from "#support/children.ts";
import { ansibleContender } from "./ansible.ts";
import { measure, median, type Measured } from "./measure.ts";
import { pyinfraContender } from "./pyinfra.ts";
import type { Cell, Name, Phase, Place } from "./results.ts";
import { kcore, kcoreContender, prove, scriptContender, type Contender, type Scene } from "./scene.ts";

export function contenderOf(name: Name, scene: Scene): Contender {
  switch (name) {
    case "script":
      return scriptContender(scene);
    case "kcore":
    case "local":
      return kcoreContender(scene, { local: name === "local" });
    case "ansible":
    case "mitogen":
      return ansibleContender(scene, { mitogen: name === "mitogen" });
    case "pyinfra":
      return pyinfraContender(scene);
  }
}

interface Sample extends Measured {
  readonly targets: number;
}

/**
 * Every contender in every round, from scratch and once more, each time in another order: a disturbance of the machine
 * affects all of them. Each result is proved.
 */
export async function timeRounds(scene: Scene, names: readonly Name[], rtt: number, rounds: number): Promise<Cell[]> {
  const samples = new Map<string, Sample[]>();
  const keep = (name: string, sample: Sample) => void samples.set(name, [...(samples.get(name) ?? []), sample]);
  for (let round = 0; round < rounds; round++)
    for (const at of names.keys()) {
      const name = names[(at + round) % names.length] ?? "kcore";
      const contender = contenderOf(name, scene);
      contender.reset();
      for (const phase of ["A", "B"] as const) keep(`${name} ${phase}`, await perform(scene, contender, phase));
    }
  const place: Place = { work: scene.name, nodes: scene.nodes.length, rtt };
  return names.flatMap((name) =>
    (["A", "B"] as const).map((phase): Cell => {
      const all = samples.get(`${name} ${phase}`) ?? [];
      const middle = (of: (sample: Sample) => number) => round(median(all.map(of)));
      const [seconds, bastion] = [middle((sample) => sample.seconds), middle((sample) => sample.cpu)];
      const targets = middle((sample) => sample.targets);
      return { ...place, contender: name, phase, rounds, seconds, bastion, targets };
    }),
  );
}

/** One command, proved; everything that it left on the targets has ended when this returns. */
export async function perform(scene: Scene, contender: Contender, phase: Phase): Promise<Sample> {
  await scene.targets.quiet();
  const before = scene.targets.cpuSeconds();
  const measured = await measure(contender.command);
  await scene.targets.quiet();
  prove(scene, contender, measured.stdout, phase);
  return { ...measured, targets: scene.targets.cpuSeconds() - before };
}

/** MB that the largest of kcore's processes holds at its peak when nothing changes; for a scene that was timed just now. */
export async function peakMemory(scene: Scene): Promise<number> {
  const contender = contenderOf("kcore", scene);
  let [over, peak] = [false, 0];
  const ended = perform(scene, contender, "B").finally(() => (over = true));
  for (; !over; await sleep(250))
    for (const pid of await descendantsOf(process.pid)) peak = Math.max(peak, peakOf(pid));
  await ended;
  return peak;
}

/** The most that a living kcore ever held (proc(5), VmHWM); 0 for other programs. */
function peakOf(pid: number): number {
  try {
    const program = readFileSync(`/proc/${pid}/cmdline`, "utf8");
    if (!program.includes(dirname(dirname(kcore)))) return 0;
    return Number(/VmHWM:\s*(\d+)/.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1] ?? 0) / 1000;
  } catch {
    return 0;
  }
}

export function round(value: number): number {
  return Number(value.toFixed(4));
}
