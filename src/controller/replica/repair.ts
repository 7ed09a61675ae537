// “Convergent” (docs/replication.md): two controllers that hold different values for the same transactions come to the same ones.
import { differingBuckets } from "#crdt/digest.ts";
import { compareRegisters } from "#crdt/merge-kind.ts";
import { isSameDot, type Register } from "#crdt/register.ts";
import { covers, isSameVector } from "#crdt/version-vector.ts";
import type { MessageOf } from "./messages.ts";
import type { PeerStream } from "./peer.ts";
import type { Core } from "./replica-core.ts";
import type { Writer } from "./writer.ts";

/**
 * Raises an alarm if a peer's ping shows that the peer holds other values for the same transactions: a disk or a program is broken. Sends the
 * digest then, so that both exchange the values. A later ping with equal values clears the alarm.
 */
export function reportDivergence({ state, commits, alarms }: Core, stream: PeerStream, ping: MessageOf<"ping">): void {
  const { vv, digest } = ping;
  const { map } = state;
  const own = commits.digest().digest;
  if (!isSameVector(map.vector, new Map(vv)) || digest === undefined || own === undefined) return;
  const { id } = stream.peer;
  const text = `${id} has seen the same transactions and holds other values; they are being exchanged`;
  alarms.set(digest !== own, "STATE_DIVERGENCE", id, text);
  if (digest !== own) stream.send({ t: "digest", vv, sums: map.digest.sums() });
}

/** The buckets to fetch from a peer that reported a divergence; none if either controller has changed since. */
export function divergingBuckets({ state, commits }: Core, { vv, sums }: MessageOf<"digest">): readonly number[] {
  const { map } = state;
  if (!isSameVector(map.vector, new Map(vv)) || commits.digest().digest === undefined) return [];
  return differingBuckets(map.digest.sums(), sums);
}

/**
 * The registers of a peer to merge when two controllers hold different values under one version vector (one controller lost some, or a
 * clone wrote). Both keep all registers, and of two contents under one dot the greater, so all controllers converge.
 */
export function registersToRepair({ state, generation }: Core, registers: readonly Register[]): readonly Register[] {
  const { map, rules } = state;
  return registers.filter((register) => {
    const { key, o, s, text } = register;
    if (!covers(map.vector, o, s)) return false;
    const present = map.get(key);
    if (!present) return !generation.hasWritten(o);
    if (!isSameDot(present, register)) return true;
    const order = compareRegisters(rules.mergeKindOf(key), register, present);
    return order > 0 || (order === 0 && JSON.stringify(text) > JSON.stringify(present.text));
  });
}

/**
 * Deletes again the values of a peer that lost their deletion, which all others have forgotten. Only the process that wrote such a value
 * knows of its deletion.
 */
export async function deleteAgain(
  { state, generation }: Core,
  writer: Writer,
  registers: readonly Register[],
): Promise<void> {
  const back = registers.filter(({ key, text, o }) => text !== null && generation.hasWritten(o) && !state.map.get(key));
  if (back.length === 0 || writer.refusal() !== undefined) return;
  await writer.rewrite(back.map((each) => ({ ...each, text: null })));
}
