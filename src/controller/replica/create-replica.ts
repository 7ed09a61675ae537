// “Convergent” (docs/replication.md): builds a replica of its parts, and lists its operations.
import type { Register } from "#crdt/register.ts";
import { dominates } from "#crdt/version-vector.ts";
import { endCatchUp } from "./catch-up.ts";
import { startTombstoneGc } from "./tombstone-gc.ts";
import { Core } from "./replica-core.ts";
import { Dialler } from "./dialler.ts";
import { authKeyOf, controllerOf } from "./registered-controllers.ts";
import { Outbox } from "./outbox.ts";
import type { Change, Json, ReplicaOptions, ReplicationStatus, SoftValue, Written } from "./replica.ts";
import { startConflictCleanup } from "./conflict-cleanup.ts";
import type { ConflictRecord } from "./conflict-record.ts";
import type { PeerRefusal } from "./refusals.ts";
import type { DialTarget, LinkEvents, PeerLink } from "./replica-ports.ts";
import { Quarantine } from "./quarantine.ts";
import { Sessions } from "./sessions.ts";
import { SoftState } from "./soft-state.ts";
import { statusOf } from "./status.ts";
import { Writer } from "./writer.ts";

/** One controller's copy of the cluster's state. */
export type Replica = ReturnType<typeof createReplica>;

/** Recovers the state, and starts replicating. All its input comes from its ports. */
export function createReplica(options: ReplicaOptions) {
  const core = new Core(options);
  const { state } = core;
  if (state.storeId === "") initialise(core);
  if (state.origin === "") core.generation.renew();
  const outbox = new Outbox(core);
  const soft = new SoftState(options.id, options.clock.mono, (entries) => {
    for (const stream of sessions.open()) stream.send({ t: "soft", entries });
  });
  const dialler = new Dialler(core, (id) => sessions.isConnected(id));
  const writer = new Writer(core, outbox);
  const sessions: Sessions = new Sessions(core, { outbox, dialler, soft, writer });
  // No other controller is registered that it could ask.
  if (state.ready && state.isBehind && core.others.length === 0) endCatchUp(core, () => undefined);
  askOthers(core, sessions);
  dialler.start();
  startTombstoneGc(core);
  startConflictCleanup(core, writer);

  const quarantine = new Quarantine(core);

  return {
    /** The live register, or undefined: absent, deleted or quarantined. Its `text` is the value as JSON. */
    get(key: string): Register | undefined {
      const register = state.map.get(key);
      return register && quarantine.isShown(register) ? register : undefined;
    },
    /** Whether a value stands, also one that this version cannot read. */
    stands: (key: string): boolean => (state.map.get(key)?.text ?? null) !== null,
    /** Keys of live registers that are not shown, in no order. */
    unreadable: (prefix: string): Iterable<string> => quarantine.below(prefix),
    /** Live registers whose key starts with `prefix`, in the order of keys. The caller must not write while iterating. */
    *entries(prefix: string): Iterable<readonly [string, Register]> {
      for (const register of state.map.withPrefix(prefix))
        if (quarantine.isShown(register)) yield [register.key, register] as const;
    },
    /** Registers that the controller with this id, or one whose id begins so, wrote last; deletions and writes in a conflict are among them. */
    *writtenBy(id: string): Iterable<Register> {
      for (const [origin, seq] of state.map.vector)
        if (controllerOf(origin).startsWith(id)) yield* state.map.since(origin, 0, seq);
    },
    /** One transaction, all or nothing. Resolves when it is durable here; then it is pushed. @throws WriteRefused */
    write: (changes: readonly Change[]): Promise<Written> => writer.write(changes),
    /** Called after each durable change, local or remote, with the keys. The result ends it. */
    watch: (listener: (keys: readonly string[]) => void): (() => void) => core.watch(listener),
    /** One for each key, the same on all replicas that agree. */
    conflicts: (): readonly ConflictRecord[] => state.conflicts(),
    status: (): ReplicationStatus => statusOf(core, writer.refusal(), quarantine.keys),
    /** The answer of a member that this controller is not a member, in words, while no other member lets it in. */
    turnedOut: (): string | undefined => core.refusals.turnedOut,
    /** Whether no member has accepted this controller since its start, although another member has written before. */
    isUnheard: (): boolean => !core.hasHeard,
    connected: (link: PeerLink): LinkEvents => sessions.connected(link),
    /** `refusal`: one of the two controllers refused the other; else the target was out of reach. */
    dialFailed: (target: DialTarget, refusal?: PeerRefusal): void => {
      if (refusal) core.refusals.note("id" in target ? target.id : target.address, refusal);
      dialler.failed(target);
    },
    /** A controller called and was refused before it came to a link. */
    turnedAway: (peer: string, refusal: Omit<PeerRefusal, "by">): void =>
      core.refusals.note(peer, { ...refusal, by: "us" }),
    /** Sets or clears an alarm about the world outside of the replica. */
    alarm: (...args: Parameters<Core["alarms"]["set"]>): void => core.alarms.set(...args),
    /** Registers a soft value of this controller's and spreads it: at once to connected peers. */
    shareSoft: (key: string, boot: number, seq: number, value: Json): void => soft.share(key, boot, seq, value),
    /** The keys of all soft values; some more than once. */
    softKeys: (): Iterable<string> => soft.keys(),
    /** The value of each controller, this one among them. */
    softValues: (key: string): Iterable<SoftValue> => soft.of(key),
    /** Pushes until one peer has everything, then takes this controller's registration away. @throws WriteRefused */
    async leave(): Promise<void> {
      await untilConfirmed(core);
      await writer.write([{ key: authKeyOf(options.id), value: null }]);
      await untilConfirmed(core);
    },
    /** Stops timers and links; waits for nothing. Writes under way may still become durable. */
    stop(): void {
      core.stop();
      sessions.stop();
    },
  };
}

/**
 * A store may have been put back without the controller's knowledge, so the controller asks the others before it is
 * ready. It does not wait for a member that is out of reach, or whose stamps lie too far ahead.
 */
function askOthers(core: Core, sessions: Sessions): void {
  const { confirmWithin, recoverWithin } = core.tuning;
  const check = (): void => {
    const isWorthIt = sessions.open().some(({ peer }) => peer.isReady === true && peer.deferred.size === 0);
    if (!isWorthIt) core.endAsking();
    if (core.isAsking) core.after(confirmWithin, check);
  };
  core.after(confirmWithin, check);
  core.after(recoverWithin, () => core.endAsking());
}

function initialise(core: Core): void {
  const meta = { t: "meta", format: 1, storeId: core.randomName(), ready: core.options.start === "found" } as const;
  core.state.apply(meta);
  // The first write is journaled behind it, and fails with it.
  core.commit([meta]);
}

/** Resolves when one other member holds all that this one does; at once when there is none. */
function untilConfirmed(core: Core): Promise<void> {
  return new Promise((resolve) => {
    const check = (): void => {
      const { others, state } = core;
      const isHeld = others.some((id) => {
        const { acked, refusal } = core.peerOf(id);
        // A member that knows of the removal refuses this controller.
        return dominates(acked ?? new Map(), state.map.vector) || refusal?.code === "NOT_REGISTERED";
      });
      if (isHeld || others.length === 0) resolve();
      else core.after(100, check);
    };
    check();
  });
}
