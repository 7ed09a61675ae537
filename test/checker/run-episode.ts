import type { Cluster } from "./controllers.ts";
import type { Fault } from "./faults.ts";
import type { Cut, History, SetBack, Write } from "./history.ts";
import { judge, type Violation } from "./judge.ts";
import { acknowledgeConflicts, lookAt, timeToAgree } from "./observe.ts";
import { Random } from "#support/random.ts";
import { Workload } from "./workload.ts";

export interface Result {
  readonly name: string;
  readonly acknowledged: number;
  readonly asked: number;
  readonly conflicts: number;
  readonly healedMs: number | undefined;
  readonly violations: readonly Violation[];
}

/** The life of one cluster, episode after episode: an acknowledged write must stay for good. */
export class Life {
  readonly writes: Write[] = [];
  readonly cuts: Cut[] = [];
  readonly agreed: number[] = [];
  readonly setBacks: SetBack[] = [];
  readonly nodes: string[] = [];
}

/** One fault while operators write, its end, and the judge's findings. */
export async function runEpisode(
  cluster: Cluster,
  life: Life,
  {
    fault,
    episode,
    seed,
    lastsMs,
  }: { readonly fault: Fault; readonly episode: number; readonly seed: number; readonly lastsMs: number },
): Promise<Result> {
  const { controllers } = cluster;
  const [first] = controllers;
  if (!first) throw new Error("no controllers");
  const random = new Random(seed * 1_000 + episode);
  const workload = new Workload(episode);
  await workload.prepare(first);
  life.nodes.push(workload.node);
  const setBacks: SetBack[] = [];
  const agree = async (): Promise<number | undefined> => {
    const took = await timeToAgree(controllers);
    if (took !== undefined) life.agreed.push(performance.now());
    return took;
  };
  await agree();
  workload.start(controllers, fault.pair, random.fork());
  try {
    await fault.suffer({ controllers, workload, random, lastsMs, cuts: life.cuts, setBacks });
  } finally {
    var over = performance.now();
    await workload.stop();
  }
  const took = await agree();
  const now = performance.now();
  const healedMs = took === undefined ? undefined : now - over;
  life.setBacks.push(...setBacks.map(({ at, from }) => ({ at, from, to: now })));
  life.writes.push(...workload.writes);
  const views = await Promise.all(controllers.map((controller) => lookAt(controller, life.nodes)));
  const { writes, cuts, agreed } = life;
  const { falselyHealthy } = workload;
  const history: History = { episode, writes, cuts, agreed, setBacks: life.setBacks, views, healedMs, falselyHealthy };
  const violations = judge(history);
  await acknowledgeConflicts(first);
  const acknowledged = workload.writes.filter(({ outcome }) => outcome === "ok").length;
  const asked = workload.writes.length;
  return { name: fault.name, acknowledged, asked, conflicts: views[0]?.conflicts.length ?? 0, healedMs, violations };
}
