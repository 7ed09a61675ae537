import { Causality, successorsOf } from "./causality.ts";
import type { History, ListedConflict, View, Write } from "./history.ts";

export type Rule =
  | "no agreement"
  | "slow"
  | "views differ"
  | "lost"
  | "came back"
  | "invented"
  | "reject beaten"
  | "approve ignored"
  | "conflict missing"
  | "conflict undue"
  | "falsely healthy"
  | "broken";

export interface Violation {
  readonly rule: Rule;
  readonly text: string;
}

/** The longest time from the end of a fault to agreement. */
export const healWithinMs = 10_000;

/** The breaches of docs/replication.md in a cluster's life. */
export function judge(history: History): readonly Violation[] {
  const causality = new Causality(history);
  const byKey = Map.groupBy(history.writes, ({ key }) => key);
  const [view] = history.views;
  const perKey = [...byKey].flatMap(([key, writes]) => {
    if (!view) return [];
    return (key.startsWith("decision/") ? judgeDecision : judgeValue)({ key, writes, view, causality });
  });
  return [
    ...judgeHealing(history),
    ...judgeViews(history.views),
    ...perKey,
    ...history.falselyHealthy.map((text): Violation => ({ rule: "falsely healthy", text })),
    ...history.views.flatMap(({ at, conflicts }) => judgeConflicts({ at, conflicts, byKey, history, causality })),
  ];
}

function judgeHealing({ healedMs }: History): readonly Violation[] {
  if (healedMs === undefined) return [{ rule: "no agreement", text: "they never came to hold the same" }];
  if (healedMs <= healWithinMs) return [];
  return [{ rule: "slow", text: `they held the same ${Math.round(healedMs)} ms after the fault` }];
}

function judgeViews([first, ...others]: readonly View[]): readonly Violation[] {
  if (!first) return [];
  return others.flatMap(({ at, values }) => {
    const keys = [...new Set([...first.values.keys(), ...values.keys()])];
    const differing = keys.filter((key) => first.values.get(key) !== values.get(key));
    const texts = differing
      .slice(0, 3)
      .map((key) => `${key} is ${first.values.get(key)} at ${first.at} and ${values.get(key)} at ${at}`);
    return texts.length > 0
      ? [{ rule: "views differ" as const, text: `${differing.length}: ${texts.join("; ")}` }]
      : [];
  });
}

interface OfKey {
  readonly key: string;
  readonly writes: readonly Write[];
  readonly view: View;
  readonly causality: Causality;
}

/** The final value must be one of the writes, and none that a later write had seen and replaced. */
function judgeValue({ key, writes, view, causality }: OfKey): readonly Violation[] {
  const final = view.values.get(key) ?? null;
  const done = writes.filter(({ outcome }) => outcome !== "refused");
  const candidates = done.filter(({ value }) => value === final);
  const acknowledged = done.filter(({ outcome }) => outcome === "ok");
  if (candidates.length === 0) {
    if (final !== null) return [{ rule: "invented", text: `${key} is ${final}, which nobody wrote` }];
    const [some] = acknowledged;
    return some ? [{ rule: "lost", text: `${key} is absent; ${describe(some)}, and nobody removed it` }] : [];
  }
  let overwriter: Write | undefined;
  for (const candidate of candidates) {
    overwriter = [...successorsOf(candidate, done, causality)].find(({ outcome }) => outcome === "ok");
    if (!overwriter) return [];
  }
  const rule = overwriter?.value === null ? "came back" : "lost";
  return overwriter ? [{ rule, text: `${key} is ${final}; ${describe(overwriter)} after that had been seen` }] : [];
}

/** A reject beats every approve that has not seen it; an approve that has seen all rejects lets the node in. */
function judgeDecision({ key, writes, view, causality }: OfKey): readonly Violation[] {
  const final = view.values.get(key);
  const done = writes.filter(({ outcome }) => outcome !== "refused");
  const rejects = done.filter(({ value }) => value === "rejected");
  const approves = done.filter(({ value }) => value === "approved");
  const unread = rejects.find(
    (reject) => reject.outcome === "ok" && approves.every((approve) => causality.surelyDidNotSee(approve, reject)),
  );
  if (unread && final !== "rejected")
    return [
      { rule: "reject beaten", text: `${key} is ${final}; ${describe(unread)}, and no approve can have read that` },
    ];
  const wise = approves.find(
    (approve) => approve.outcome === "ok" && rejects.every((reject) => causality.surelySaw(approve, reject)),
  );
  if (wise && final !== "approved")
    return [{ rule: "approve ignored", text: `${key} is ${final}; ${describe(wise)}, having read every reject` }];
  return [];
}

/**
 * The list of conflicts at one controller. A write that lost to a concurrent write is due, unless it had been superseded on its own side
 * before.
 */
function judgeConflicts({
  at,
  conflicts,
  byKey,
  history,
  causality,
}: {
  readonly at: number;
  readonly conflicts: readonly ListedConflict[];
  readonly byKey: ReadonlyMap<string, readonly Write[]>;
  readonly history: History;
  readonly causality: Causality;
}): readonly Violation[] {
  const listed = Map.groupBy(conflicts, ({ key }) => key);
  const undue: string[] = [];
  const missing: string[] = [];
  for (const [key, records] of listed) {
    const writes = (byKey.get(key) ?? []).filter(({ outcome }) => outcome !== "refused");
    for (const { winner, loser } of records) {
      const ofValue = (value: string | null): readonly Write[] => writes.filter((write) => write.value === value);
      const winners = ofValue(winner);
      // A write that had seen the loser, and cannot have seen the winner, took the loser's place before the two met.
      const supersedes = (write: Write): boolean =>
        write.outcome === "ok" && winners.every((each) => each === write || causality.surelyDidNotSee(write, each));
      const losers = ofValue(loser);
      const isOver = losers.every((each) =>
        [...successorsOf(each, writes, causality)].some((write) => supersedes(write) || winners.includes(write)),
      );
      if (losers.length === 0) undue.push(`${key}: ${loser}, which nobody wrote, lost to ${winner}`);
      else if (isOver) undue.push(`${key}: ${loser} lost to ${winner}, and was superseded by who had seen it`);
    }
  }
  for (const [key, all] of byKey) {
    const writes = all.filter(({ outcome }) => outcome !== "refused");
    if (key.startsWith("decision/") || writes[0]?.episode !== history.episode || listed.has(key)) continue;
    const heads = writes.filter(
      (write) =>
        write.outcome === "ok" && writes.every((other) => other === write || causality.surelyDidNotSee(other, write)),
    );
    const pair = heads.flatMap((a) => heads.filter((b) => a.value !== b.value && causality.areConcurrent(a, b)))[0];
    if (pair) missing.push(key);
  }
  const violation = (rule: Rule, texts: readonly string[]): readonly Violation[] =>
    texts.length === 0 ? [] : [{ rule, text: `at ${at}, ${texts.length}: ${texts.slice(0, 3).join("; ")}` }];
  return [...violation("conflict undue", undue), ...violation("conflict missing", missing)];
}

function describe({ value, at, outcome }: Write): string {
  return `${value === null ? "its removal" : `“${value}”`} was ${outcome === "ok" ? "acknowledged" : "asked"} by ${at}`;
}
