import { dominates } from "#crdt/version-vector.ts";
import { maxKeyBytes, maxValueBytes, type Register } from "#crdt/register.ts";
import { startCollector } from "./collector.ts";
import type { ConflictRecord } from "./conflict-record.ts";
import { Core } from "./core.ts";
import { Dialler } from "./dialler.ts";
import { Incarnation } from "./incarnation.ts";
import { authKeyOf } from "./registered-controllers.ts";
import { Outbox } from "./outbox.ts";
import type { Json, Replica, ReplicaOptions } from "./replica.ts";
import { startReporter } from "./reporter.ts";
import { Sessions } from "./sessions.ts";
import { SoftState } from "./soft-state.ts";
import { statusOf } from "./status.ts";
import { Writer } from "./writer.ts";

/** Recovers the state, and starts replicating. Everything it does from here on comes from its ports. */
export function createReplica(options: ReplicaOptions): Replica {
  const core = new Core(options);
  const { state } = core;
  const incarnation = new Incarnation(core);
  if (state.storeId === "") initialise(core);
  if (state.origin === "") incarnation.renew();
  const outbox = new Outbox(core);
  const soft = new SoftState(options.clock.mono, (entries) => {
    for (const stream of sessions.open()) stream.send({ t: "soft", entries });
  });
  const dialler = new Dialler(core, (id) => sessions.isConnected(id));
  const writer = new Writer(core, incarnation, outbox);
  const sessions: Sessions = new Sessions(core, { incarnation, outbox, dialler, soft, writer });
  dialler.start();
  startCollector(core);
  startReporter(core, writer);

  const quarantined = new Set<string>();
  // Each register was judged when it came; reading is asked for with every request.
  const isShown = ({ key, text }: Register): boolean => text !== null && !quarantined.has(key);
  const check = (keys: Iterable<string>): void => {
    for (const key of keys) {
      const register = state.map.get(key);
      if (register && register.text !== null && !isReadable(options, register)) quarantined.add(key);
      else quarantined.delete(key);
    }
    core.alarms.set(
      quarantined.size > 0,
      "QUARANTINED",
      "state",
      `${quarantined.size} registers cannot be read by this version`,
    );
  };
  check(Array.from(state.map.all(), ({ key }) => key));
  core.watch(check);

  return {
    get(key) {
      const register = state.map.get(key);
      return register && isShown(register) ? register : undefined;
    },
    *entries(prefix) {
      for (const register of state.map.withPrefix(prefix))
        if (isShown(register)) yield [register.key, register] as const;
    },
    write: (changes) => writer.write(changes),
    watch: (listener) => core.watch(listener),
    conflicts: () => conflictsOf(core),
    status: () => statusOf(core, writer.refusal(), quarantined),
    snapshot() {
      core.settle();
      return state.snapshot();
    },
    connected: (link) => sessions.connected(link),
    dialFailed: (target) => dialler.failed(target),
    shareSoft: (key, boot, seq, value) => soft.share(key, boot, seq, value),
    *softEntries() {
      for (const { key, text, receivedMono } of soft.entries())
        yield { key, value: JSON.parse(text) as Json, receivedMono };
    },
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

function initialise(core: Core): void {
  const meta = { t: "meta", format: 1, storeId: core.randomName(), ready: core.options.start === "found" } as const;
  core.state.apply(meta);
  // The first write is journaled behind it, and fails with it.
  core.commit(
    [meta],
    [],
    () => undefined,
    () => undefined,
  );
}

function isReadable({ isKnown }: ReplicaOptions, { key, text }: Register): boolean {
  if (text === null) return true;
  if (key.length > maxKeyBytes || text.length > maxValueBytes) return false;
  return isKnown ? isKnown(key, text) : isJson(text);
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Those that stand as registers, and those found here that are about to. */
function conflictsOf({ state }: Core): readonly ConflictRecord[] {
  const found = new Map<string, ConflictRecord>();
  for (const { key, text } of state.map.withPrefix("conflict/"))
    if (text !== null) found.set(key, JSON.parse(text) as ConflictRecord);
  for (const [id, record] of state.conflicts) if (!state.map.get(`conflict/${id}`)) found.set(`conflict/${id}`, record);
  return [...found.values()];
}

/** Resolves when one other member holds all that this one does; at once when there is none. */
function untilConfirmed(core: Core): Promise<void> {
  return new Promise((resolve) => {
    const look = (): void => {
      const { others, state } = core;
      const isHeld = others.some((id) => {
        const { acked, refusal } = core.peerOf(id);
        // Who knows that this controller is gone refuses it.
        return dominates(acked ?? new Map(), state.map.vector) || refusal?.code === "NOT_REGISTERED";
      });
      if (isHeld || others.length === 0) resolve();
      else core.after(100, look);
    };
    look();
  });
}
