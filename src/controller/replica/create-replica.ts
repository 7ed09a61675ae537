// “Convergent” (docs/replication.md): builds a replica of its parts, and lists its operations.
import type { Register } from "#crdt/register.ts";
import { dominates } from "#crdt/version-vector.ts";
import { endCatchUp } from "./catch-up.ts";
import { inBackground } from "./commit-queue.ts";
import { startTombstoneGc } from "./tombstone-gc.ts";
import { Core } from "./replica-core.ts";
import { Dialler } from "./dialler.ts";
import { authKeyOf, controllerOf } from "./registered-controllers.ts";
import { Outbox } from "./outbox.ts";
import type { CommittedWrite, KeyChange, ReplicaOptions, ReplicaStatus, SoftValue } from "./replica.ts";
import { startConflictAlarm } from "./conflict-alarm.ts";
import type { ConflictRecord } from "./conflict-record.ts";
import type { PeerRefusal } from "./refusals.ts";
import type { SoftEntry } from "./messages.ts";
import type { DialTarget, LinkEvents, PeerLink } from "./replica-ports.ts";
import { Quarantine } from "./quarantine.ts";
import { Sessions } from "./sessions.ts";
import { SoftState } from "./soft-state.ts";
import { replicaStatusOf } from "./status.ts";
import { Writer } from "./writer.ts";

/** One controller's copy of the cluster's state. */
export type Replica = ReturnType<typeof createReplica>;

/** Starts replicating the recovered state of `options.db`. All its input comes from its ports (replica-ports.ts). */
export function createReplica(options: ReplicaOptions) {
  const core = new Core(options);
  const { state } = core;
  if (state.storeId === "") initialise(core);
  if (state.origin === "") core.generation.renew();
  const outbox = new Outbox(core);
  const spread = (entries: readonly SoftEntry[]): void => {
    for (const stream of sessions.openStreams()) stream.send({ t: "soft", entries });
  };
  const soft = new SoftState(options.id, { mono: options.clock.mono, after: (...args) => core.after(...args), spread });
  const dialler = new Dialler(core, (id) => sessions.isConnected(id));
  const writer = new Writer(core, outbox);
  const sessions: Sessions = new Sessions(core, { outbox, dialler, soft, writer });
  // A restored controller that knows of no other one has nothing to catch up with.
  if (state.ready && state.isBehind && core.others.length === 0) inBackground(endCatchUp(core));
  limitStartQueries(core, sessions);
  dialler.start();
  startTombstoneGc(core);
  startConflictAlarm(core);

  const quarantine = new Quarantine(core);

  return {
    /** The live register, with its value as JSON in `text`; undefined if it is absent, deleted or quarantined. */
    get(key: string): Register | undefined {
      const register = state.map.get(key);
      return register && quarantine.isShown(register) ? register : undefined;
    },
    /** Whether a key has a value, readable for this version or not. */
    stands: (key: string): boolean => (state.map.get(key)?.text ?? null) !== null,
    /** Keys of live registers that this version cannot read. */
    unreadable: (prefix: string): Iterable<string> => quarantine.below(prefix),
    /** Live registers whose key starts with `prefix`, in the order of keys; keys added during the iteration may be missing. */
    *entries(prefix: string): Iterable<readonly [string, Register]> {
      for (const register of state.map.withPrefix(prefix))
        if (quarantine.isShown(register)) yield [register.key, register] as const;
    },
    /** The registers last written by controllers whose id starts with `id`; deletions, and lost writes in conflicts, are among them. */
    *writtenBy(id: string): Iterable<Register> {
      for (const [origin, seq] of state.map.vector)
        if (controllerOf(origin).startsWith(id)) yield* state.map.since(origin, 0, seq);
    },
    /** Writes one transaction, all or nothing. Resolves when it is durable here; then it is pushed to peers. @throws WriteRefused */
    write: (changes: readonly KeyChange[]): Promise<CommittedWrite> => writer.write(changes),
    /** Calls `listener` with the keys after each durable change, local or remote; the result unsubscribes. */
    watch: (listener: (keys: readonly string[]) => void): (() => void) => core.commits.watch(listener),
    /** The open conflicts, one for each key; the same on all replicas with the same state. */
    conflicts: (): readonly ConflictRecord[] => state.conflicts(),
    status: (): ReplicaStatus => replicaStatusOf(core, writer.refusal(), quarantine.keys),
    /** The answer of a member that this controller's key was revoked, while no member lets it in. */
    turnedOut: (): string | undefined => core.refusals.turnedOut,
    /** Whether no member has let this controller in since its start, so that writes may reach no other one (`Core.hasHeard`). */
    isUnheard: (): boolean => !core.hasHeard,
    connected: (link: PeerLink): LinkEvents => sessions.connected(link),
    /** Called when no link came about. `refusal`: one of the two controllers refused the other; without it the target was out of reach. */
    dialFailed: (target: DialTarget, refusal?: PeerRefusal): void => {
      if (refusal) core.refusals.note("id" in target ? target.id : target.address, refusal);
      dialler.failed(target);
    },
    /** Called when a calling controller was refused before there was a link. */
    callerRefused: (peer: string, refusal: Omit<PeerRefusal, "by">): void =>
      core.refusals.note(peer, { ...refusal, by: "us" }),
    /** Sets or clears an alarm about the world outside of the replica. */
    alarm: (...args: Parameters<Core["alarms"]["set"]>): void => core.alarms.set(...args),
    /** Stores a soft value of this controller and sends it to the connected peers: {@link SoftState.share}. */
    shareSoft: (...args: Parameters<SoftState["share"]>): void => soft.share(...args),
    /** The keys of all soft values, with duplicates. */
    softKeys: (): Iterable<string> => soft.keys(),
    /** Each controller's value of a key, this controller's among them. */
    softValues: (key: string): Iterable<SoftValue> => soft.of(key),
    /** Waits until one peer has everything, deletes this controller's registration, and waits until a peer has that. @throws WriteRefused */
    async leave(): Promise<void> {
      await untilConfirmed(core);
      await writer.write([{ key: authKeyOf(options.id), value: null }]);
      await untilConfirmed(core);
    },
    /** Stops timers and links at once. Writes under way may still become durable. */
    stop(): void {
      core.stop();
      sessions.stop();
    },
  };
}

/**
 * Limits the time in which a starting controller asks the other members for their state. It asks them before it is ready, because an
 * operator may have restored its store. It does not wait for a member that is out of reach, or whose stamps lie too far ahead.
 */
function limitStartQueries(core: Core, sessions: Sessions): void {
  const { confirmWithin, recoverWithin } = core.tuning;
  const check = (): void => {
    const mayAnswer = sessions
      .openStreams()
      .some(({ peer }) => peer.isReady === true && !core.futureStamps.hasWaiting(peer.id));
    if (!mayAnswer) core.endAsking();
    if (core.isAsking) core.after(confirmWithin, check);
  };
  core.after(confirmWithin, check);
  core.after(recoverWithin, () => core.endAsking());
}

function initialise(core: Core): void {
  const meta = { t: "meta", format: 1, storeId: core.randomName(), ready: core.options.start === "found" } as const;
  core.state.apply(meta);
  // Not awaited: the first write is journaled behind this record, and fails with it.
  inBackground(core.commits.commit([meta]));
}

/** Resolves when another member has acknowledged everything that this one holds; at once when there is no other member. */
async function untilConfirmed(core: Core): Promise<void> {
  while (!isConfirmed(core)) await core.sleep(100);
}

function isConfirmed(core: Core): boolean {
  const { others, state } = core;
  const isHeld = others.some((id) => {
    const { acked } = core.peerOf(id);
    // A member that knows of the removal refuses this controller.
    return dominates(acked ?? new Map(), state.map.vector) || core.refusals.lastOf(id)?.code === "NOT_REGISTERED";
  });
  return isHeld || others.length === 0;
}
