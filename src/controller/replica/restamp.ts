// “Wrong clocks do not write” (docs/replication.md): a repair gives the writes of a clock that was ahead a present stamp.
import { compareStamps, encodeStamp, nextStamp, witness, zero, type Stamp } from "#crdt/hlc.ts";
import { emptyPage, encodePage } from "#crdt/page.ts";
import type { Register } from "#crdt/register.ts";
import { seqIn, toWire, type CausalContext } from "#crdt/version-vector.ts";
import { originOf } from "./origin-generation.ts";
import type { ClusterState } from "./cluster-state.ts";
import type { JournalRecord } from "./replica-ports.ts";
import { defaultTuning } from "./tuning.ts";

/** A write with a stamp too far ahead, and its new stamp. Times are ms since 1970. */
export interface RestampedWrite {
  readonly key: string;
  readonly deleted: boolean;
  /** The dot before and after, `ORIGIN:SEQ`. */
  readonly was: string;
  readonly is: string;
  readonly from: number;
  readonly to: number;
}

export interface Restamped {
  /** The state as records of a snapshot. */
  readonly records: Iterable<JournalRecord>;
  readonly writes: readonly RestampedWrite[];
}

export interface RestampOptions {
  readonly id: string;
  /** The controller's wall clock, ms, which must be right. */
  readonly now: number;
  /** Returns 8 random hexadecimal digits. */
  readonly word: () => string;
}

const pageSize = 1000;
/** The distance ahead, ms, up to which a stamp stays: other controllers accept it within seconds. */
const toleratedMs = defaultTuning.maxReceiveAhead + defaultTuning.fenceAt;

/**
 * Stamps anew the writes of a clock that was ahead, since other controllers would not accept them before the stamped time: with the present
 * time, in their order, under a new origin of this controller. A controller that has the former write keeps its value. Writes of other
 * controllers with the same fault are stamped anew, too: a stamp left ahead would win over all writes until its time.
 */
export function restamp(state: ClusterState, { id, now, word }: RestampOptions): Restamped {
  const isAhead = ({ ms }: Register): boolean => ms - now > toleratedMs;
  const aheadOf = (registers: readonly Register[]): Register[] =>
    registers.filter(isAhead).toSorted((a, b) => compareStamps(a, b) || a.s - b.s);
  const all = [...state.map.all(), ...state.map.siblings.all()];
  // Salvaged registers get the last numbers: they are merged later, and the version vector must not cover them before.
  const [ahead, aheadSalvaged] = [aheadOf(all), aheadOf(state.salvaged)];
  if (ahead.length + aheadSalvaged.length === 0) return { records: state.snapshot(), writes: [] };
  const others = all.filter((register) => !isAhead(register));
  const origin = originOf(id, word());
  let clock: Stamp = others.reduce((latest, register) => witness(latest, register), zero);
  let seq = 0;
  let last: Register | undefined;
  const renew = (register: Register): Register => {
    const { o, s } = register;
    // Registers of one transaction share a new stamp and seq.
    if (last?.o !== o || last.s !== s) {
      clock = nextStamp(clock, now);
      seq++;
    }
    last = register;
    return { ...register, ms: clock.ms, c: clock.c, o: origin, s: seq, x: contextWithFormer(register) };
  };
  const restamped = ahead.map(renew);
  const upto = [...toWire(state.map.vector), ...(seq > 0 ? [[origin, seq] as const] : [])];
  const restampedSalvaged = aheadSalvaged.map(renew);
  const registers = [...others, ...restamped];
  const parts: JournalRecord[] = [];
  for (let at = 0; at < registers.length; at += pageSize)
    parts.push({ t: "part", page: encodePage(registers.slice(at, at + pageSize)) });
  const floor = compareStamps(state.floor.stamp, clock) > 0 ? clock : state.floor.stamp;
  const meta = { ...state.meta(), hlc: encodeStamp(clock), floorHlc: encodeStamp(floor) };
  const [former, present] = [
    [...ahead, ...aheadSalvaged],
    [...restamped, ...restampedSalvaged],
  ];
  const writes = former.map((register, index): RestampedWrite => {
    const { s, ms } = present[index] as Register;
    return {
      key: register.key,
      deleted: register.text === null,
      was: `${register.o}:${register.s}`,
      is: `${origin}:${s}`,
      from: register.ms,
      to: ms,
    };
  });
  const rest = state.salvaged.filter((register) => !isAhead(register));
  const salvaged: JournalRecord = { t: "salvaged", page: encodePage([...rest, ...restampedSalvaged]) };
  const behind = state.salvaged.length > 0 ? [salvaged] : [];
  return { records: [...parts, { t: "apply", page: emptyPage, upto }, meta, ...behind], writes };
}

/** The context of a write, raised to cover its former dot: the new write supersedes the former one. */
function contextWithFormer({ x, o, s }: Register): CausalContext {
  if (seqIn(x, o) >= s) return x;
  const others = x.origins.flatMap((name, index) => (name === o ? [] : [[name, x.seqs[index] ?? 0] as const]));
  return { origins: [...others.map(([name]) => name), o], seqs: [...others.map(([, seen]) => seen), s] };
}
