import { workloadNames, type WorkloadName } from "#support/workload.ts";
import { cellOf, type Cell, type Name, type Phase, type Results } from "./results.ts";

/**
 * One line of the table: a figure of the peer and of kcore. `aim` is stricter than the goal and has no verdict; `before` has the values of
 * the script and of kcore before the push was made fast.
 */
export interface Row {
  readonly figure: string;
  /** The workload with the worse figure, which counts; nothing where the figure has none. */
  readonly work: WorkloadName | "";
  readonly peer: string;
  readonly kcore: string;
  readonly ratio: string;
  readonly goal: string;
  readonly aim: string;
  readonly verdict: "ok" | "missed" | "not run";
  readonly before: string;
}

interface Goal {
  readonly figure: string;
  readonly peer: number | undefined;
  readonly kcore: number | undefined;
  readonly show: (value: number) => string;
  /** The value with a goal. `share`: kcore's figure / the peer's. `own`: kcore's figure. `faster`: the peer's / kcore's, at least. */
  readonly judge: "share" | "own" | "faster";
  readonly goal: number;
  readonly aim?: number;
  readonly work?: WorkloadName;
  readonly before: string;
}

/** The goals of the push, each judged by the workload with the worse figure. */
export function rowsOf(results: Results): readonly Row[] {
  const [goals = [], ...others] = workloadNames.map((work) => goalsOf(results, work));
  const worse = (one: Goal, other = one) => (badnessOf(other) > badnessOf(one) ? other : one);
  return [
    ...goals.map((goal, at) => others.reduce((worst, list) => worse(worst, list[at]), goal)),
    execGoal(results),
  ].map(rowOf);
}

function goalsOf(results: Results, work: WorkloadName): Goal[] {
  const at = (name: Name, phase: Phase, nodes: number, rtt = 0) => cellOf(results, name, phase, { work, nodes, rtt });
  const both = (phase: Phase, nodes: number, rtt = 0) => ({
    peer: at("script", phase, nodes, rtt)?.seconds,
    kcore: at("kcore", phase, nodes, rtt)?.seconds,
    show: seconds,
    judge: "share" as const,
  });
  const withoutStartUp = minus(at("kcore", "B", 10)?.seconds, results.startUp);
  const exact = (name: Name) => results.exact.find((each) => each.contender === name && each.work === work);
  const [script, kcore] = [exact("script"), exact("kcore")];
  const own = (peer: number | undefined, mine: number | undefined, show: Goal["show"]) =>
    ({ peer, kcore: mine, show, judge: "own" }) as const;
  // The cost of one more node; start-up is the same for all.
  const slope = (name: Name) => {
    const [ten, fifty] = [at(name, "B", 10), at(name, "B", 50)];
    return ten && fifty && (fifty.bastion - ten.bastion) / 40;
  };
  const perTarget = (cell: Cell | undefined) => cell && cell.targets / cell.nodes;
  const targets = (phase: Phase) => ({
    peer: perTarget(at("script", phase, 50)),
    kcore: perTarget(at("kcore", phase, 50)),
    show: milliseconds,
    judge: "share" as const,
  });
  const mitogen = (phase: Phase) => ({
    peer: at("mitogen", phase, 10)?.seconds,
    kcore: at("kcore", phase, 10)?.seconds,
    show: seconds,
    judge: "faster" as const,
  });
  const goals: Goal[] = [
    { figure: "B, N=50", ...both("B", 50), goal: 1.3, aim: 1.1, before: "1.55 s, 6.4 s" },
    { figure: "A, N=50", ...both("A", 50), goal: 2, aim: 1.5, before: "2.6 s, 41 s" },
    { figure: "B, N=10", ...both("B", 10), goal: 1.6, before: "0.37 s, 1.8 s" },
    { figure: "B, N=10, without kcore's start-up", ...both("B", 10), kcore: withoutStartUp, goal: 1.2, before: "" },
    { figure: "A, N=1", ...both("A", 1), goal: 4, aim: 3, before: "0.20 s, 2.4 s" },
    { figure: "B, RTT 100 ms, N=1", ...both("B", 1, 100), goal: 0.6, before: "1.64 s, 2.2 s" },
    { figure: "B, RTT 100 ms, N=10", ...both("B", 10, 100), goal: 0.7, aim: 0.6, before: "1.77 s, 2.5 to 3.0 s" },
    { figure: "A, RTT 100 ms, N=10", ...both("A", 10, 100), goal: 1.2, aim: 1, before: "2.0 s, 13 s" },
    {
      figure: "processes on a node, B",
      ...own(script?.processes.B, kcore?.processes.B, String),
      goal: 40,
      aim: 25,
      before: "8, about 85",
    },
    {
      figure: "processes for each changed directory, file or link",
      ...own(script?.perChange, kcore?.perChange, (value) => value.toFixed(1)),
      goal: 4,
      aim: 3,
      before: "1.2, 29",
    },
    {
      figure: "bytes sent to a node, B",
      ...own(script?.bytes.B, kcore?.bytes.B, kilobytes),
      goal: 12_000,
      before: "20 KB, 88.6 KB",
    },
    {
      figure: "CPU of the bastion for one more node, B",
      ...own(slope("script"), slope("kcore"), milliseconds),
      goal: 0.025,
      aim: 0.015,
      before: "18 ms, 48 to 56 ms",
    },
    { figure: "CPU of a target, A, N=50", ...targets("A"), goal: 1.9, before: "80 ms, 1,350 ms" },
    { figure: "CPU of a target, B, N=50", ...targets("B"), goal: 1.15, before: "38 ms, 170 ms" },
    { figure: "A, N=10, Ansible + Mitogen", ...mitogen("A"), goal: 10, before: "16.8 s, 8.3 s" },
    { figure: "B, N=10, Ansible + Mitogen", ...mitogen("B"), goal: 20, before: "16.8 s, 1.8 s" },
  ];
  return goals.map((goal) => ({ ...goal, work }));
}

function execGoal({ exec }: Results): Goal {
  const figure = `exec on ${exec?.nodes ?? 50} nodes, pssh`;
  return { figure, peer: exec?.pssh, kcore: exec?.kcore, show: seconds, judge: "share", goal: 1, before: "" };
}

function ratioOf({ peer, kcore, judge }: Goal): number | undefined {
  if (peer === undefined || kcore === undefined) return undefined;
  return judge === "faster" ? peer / kcore : kcore / peer;
}

/** The value that is compared with the goal. */
function judgedOf(goal: Goal): number | undefined {
  return goal.judge === "own" ? goal.kcore : ratioOf(goal);
}

/** The higher, the worse; a figure that was not measured is never the worse one. */
function badnessOf(goal: Goal): number {
  const judged = judgedOf(goal);
  if (judged === undefined) return -Infinity;
  return goal.judge === "faster" ? -judged : judged;
}

function rowOf(made: Goal): Row {
  const { figure, work = "", peer, kcore, show, judge, goal, aim, before } = made;
  const shown = (value: number | undefined) => (value === undefined ? "–" : show(value));
  const limit = (value: number | undefined) => {
    if (value === undefined) return "";
    if (judge === "own") return `≤ ${show(value)}`;
    return judge === "share" ? `≤ ${value}×` : `${value}× faster`;
  };
  const [judged, ratio] = [judgedOf(made), ratioOf(made)];
  const met = judged !== undefined && (judge === "faster" ? judged >= goal : judged <= goal);
  return {
    figure,
    work,
    peer: shown(peer),
    kcore: shown(kcore),
    ratio: ratio === undefined ? "–" : `${ratio.toFixed(2)}×${judge === "faster" ? " faster" : ""}`,
    goal: limit(goal),
    aim: limit(aim),
    verdict: judged === undefined ? "not run" : met ? "ok" : "missed",
    before,
  };
}

function minus(value: number | undefined, less: number | undefined): number | undefined {
  return value === undefined || less === undefined ? undefined : value - less;
}

export function seconds(value: number): string {
  return `${value.toFixed(2)} s`;
}

export function milliseconds(value: number): string {
  return `${(value * 1000).toFixed(0)} ms`;
}

export function kilobytes(value: number): string {
  return `${(value / 1000).toFixed(1)} KB`;
}
