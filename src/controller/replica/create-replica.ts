// Promise of docs/replication.md: Convergent.
import { dominates } from "#crdt/version-vector.ts";
import { endCatchUp } from "./catch-up.ts";
import { startTombstoneGc } from "./tombstone-gc.ts";
import { Core } from "./core.ts";
import { Dialler } from "./dialler.ts";
import { authKeyOf, controllerOf } from "./registered-controllers.ts";
import { Outbox } from "./outbox.ts";
import type { Replica, ReplicaOptions } from "./replica.ts";
import { startConflictCleanup } from "./conflict-cleanup.ts";
import { Quarantine } from "./quarantine.ts";
import { Sessions } from "./sessions.ts";
import { SoftState } from "./soft-state.ts";
import { statusOf } from "./status.ts";
import { Writer } from "./writer.ts";

/** Recovers the state, and starts replicating. All its input comes from its ports. */
export function createReplica(options: ReplicaOptions): Replica {
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
    get(key) {
      const register = state.map.get(key);
      return register && quarantine.isShown(register) ? register : undefined;
    },
    stands: (key) => (state.map.get(key)?.text ?? null) !== null,
    unreadable: (prefix) => quarantine.below(prefix),
    *entries(prefix) {
      for (const register of state.map.withPrefix(prefix))
        if (quarantine.isShown(register)) yield [register.key, register] as const;
    },
    *writtenBy(id) {
      for (const [origin, seq] of state.map.vector)
        if (controllerOf(origin).startsWith(id)) yield* state.map.since(origin, 0, seq);
    },
    write: (changes) => writer.write(changes),
    watch: (listener) => core.watch(listener),
    conflicts: () => state.conflicts(),
    status: () => statusOf(core, writer.refusal(), quarantine.keys),
    turnedOut: () => core.refusals.turnedOut,
    isUnheard: () => !core.hasHeard,
    connected: (link) => sessions.connected(link),
    dialFailed(target, refusal) {
      if (refusal) core.refusals.note("id" in target ? target.id : target.address, refusal);
      dialler.failed(target);
    },
    turnedAway: (peer, refusal) => core.refusals.note(peer, { ...refusal, by: "us" }),
    alarm: (...args) => core.alarms.set(...args),
    shareSoft: (key, boot, seq, value) => soft.share(key, boot, seq, value),
    softKeys: () => soft.keys(),
    softValues: (key) => soft.of(key),
    async leave() {
      await untilConfirmed(core);
      await writer.write([{ key: authKeyOf(options.id), value: null }]);
      await untilConfirmed(core);
    },
    stop() {
      core.isStopped = true;
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
  core.isAsking = core.others.length > 0;
  const check = (): void => {
    const isWorthIt = sessions.open().some(({ peer }) => peer.isReady === true && peer.deferred.size === 0);
    if (!isWorthIt) core.isAsking = false;
    if (core.isAsking) core.after(confirmWithin, check);
  };
  core.after(confirmWithin, check);
  core.after(recoverWithin, () => {
    core.isAsking = false;
  });
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
