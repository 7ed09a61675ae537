import { z } from "zod";
import { NodeUsage, type Heartbeat } from "#api/schemas.ts";
import { omitUndefined } from "#base/omit-undefined.ts";
import type { Replica } from "../replica/create-replica.ts";
import type { Json } from "../replica/replica.ts";

const prefix = "live/";
const Beat = z.object({
  /** Milliseconds since 1970, by the clock of the controller that heard it; always a valid date. */
  at: z.number().min(0).max(8.64e15),
  alive: z.boolean(),
  reason: z.string().optional(),
  usage: NodeUsage.optional(),
  /** Milliseconds for which it may have waited before it was sent to the peers. */
  held: z.number().min(0).optional(),
});
type Beat = z.infer<typeof Beat>;

/** A node's last heartbeat to this controller, in the form that is saved for the controller's restart. */
export const HeardLife = z.object({ id: z.string(), beat: Beat, isStale: z.boolean() });
export type HeardLife = z.infer<typeof HeardLife>;

/** A node's liveness, from its latest heartbeat to any controller. */
export interface Life {
  /** Ms since 1970; 0: not heard since this controller started. */
  readonly lastSeenAt: number;
  readonly isReady: boolean;
  readonly reason?: string;
  readonly usage?: Beat["usage"];
}

/**
 * The nodes' liveness: soft state, which is no register and in no journal. Each controller shares the heartbeats that it
 * received: a change at once, others together, seconds later. The latest heartbeat counts.
 */
export type Liveness = ReturnType<typeof watchNodeLives>;

export interface LivenessOptions {
  readonly replica: Pick<Replica, "shareSoft" | "softKeys" | "softValues">;
  readonly controllerId: string;
  readonly staleAfterMs: number;
  readonly clock: () => number;
  readonly monotonic: () => number;
}

export function watchNodeLives({ replica, controllerId, staleAfterMs, clock, monotonic }: LivenessOptions) {
  const boot = clock();
  let seq = 0;
  const own = new Map<string, { readonly beat: Beat; readonly heardMono: number }>();
  /** Whether each node was ready at the last call of `changed`. */
  const wasReady = new Map<string, boolean>();
  /** A message to each peer for each heartbeat would be half of a controller's work with a thousand nodes. */
  const shareWithinMs = Math.min(5_000, staleAfterMs / 18);

  const note = (id: string, beat: Beat): void => {
    const before = own.get(id);
    const isNews = before === undefined || before.beat.alive !== beat.alive || before.beat.reason !== beat.reason;
    own.set(id, { beat, heardMono: monotonic() });
    const held = isNews ? 0 : shareWithinMs;
    replica.shareSoft(`${prefix}${id}`, { boot, seq: ++seq }, { ...beat, held } as Json, held);
  };
  const latest = (id: string): { readonly beat: Beat; readonly ageMs: number } | undefined => {
    const direct = own.get(id);
    const other = heardByPeers(id);
    if (direct && (!other || direct.beat.at >= other.beat.at))
      return { beat: direct.beat, ageMs: monotonic() - direct.heardMono };
    // A delayed message may have brought a heartbeat that was old already, so the greater age counts.
    return other && { beat: other.beat, ageMs: Math.max(monotonic() - other.receivedMono, clock() - other.beat.at) };
  };
  const heardByPeers = (id: string): { readonly beat: Beat; readonly receivedMono: number } | undefined => {
    let best: { readonly beat: Beat; readonly receivedMono: number } | undefined;
    for (const { sender, value, receivedMono } of replica.softValues(`${prefix}${id}`)) {
      const data = sender === controllerId ? undefined : beatOf(value);
      if (!data) continue;
      // A heartbeat is no newer than the message about it, less its wait, so a peer's clock that is ahead gains nothing.
      const at = Math.min(data.at, clock() - (monotonic() - receivedMono) - (data.held ?? 0));
      if (!best || best.beat.at < at) best = { beat: { ...data, at }, receivedMono };
    }
    return best;
  };
  const lifeOf = (id: string): Life => {
    const found = latest(id);
    if (!found) return { lastSeenAt: 0, isReady: false, reason: "not heard since this controller started" };
    const { beat, ageMs } = found;
    const silence = ageMs > staleAfterMs ? `no heartbeat since ${new Date(beat.at).toISOString()}` : undefined;
    const reason = beat.alive ? (silence ?? beat.reason) : (beat.reason ?? "its agent was stopped");
    return {
      lastSeenAt: beat.at,
      isReady: beat.alive && reason === undefined,
      ...omitUndefined({ reason, usage: beat.usage }),
    };
  };

  return {
    /** Called for each heartbeat of a node, and for its registration. */
    hear: (id: string, { usage, health }: Pick<Heartbeat, "usage" | "health"> = {}): void =>
      note(id, {
        at: clock(),
        alive: true,
        ...(health?.ok === false ? { reason: health.reason ?? "the node says that it is not well" } : {}),
        ...omitUndefined({ usage }),
      }),
    /** Called when a node's agent announces its stop. */
    stopped: (id: string): void => note(id, { at: clock(), alive: false, reason: "its agent was stopped" }),
    of: lifeOf,
    /** Nodes whose readiness has changed since the last call, for watches. */
    changed(): readonly string[] {
      const ids = new Set(own.keys());
      for (const key of replica.softKeys()) if (key.startsWith(prefix)) ids.add(key.slice(prefix.length));
      const news: string[] = [];
      for (const id of wasReady.keys()) if (!ids.has(id)) wasReady.delete(id);
      for (const id of ids) {
        const { isReady } = lifeOf(id);
        if (wasReady.get(id) !== isReady) news.push(id);
        wasReady.set(id, isReady);
      }
      return news;
    },
    /** The nodes that sent heartbeats to this controller, for its next start. */
    heard: (): readonly HeardLife[] =>
      Array.from(own, ([id, { beat, heardMono }]) => ({
        id,
        beat,
        isStale: monotonic() - heardMono > staleAfterMs,
      })),
    /** Takes over the heartbeats from before a restart; a node that was not stale gets the full time until its next heartbeat. */
    recall(lives: readonly HeardLife[]): void {
      for (const { id, beat, isStale } of lives) {
        const heardMono = isStale ? -Infinity : monotonic();
        if (!own.has(id)) own.set(id, { beat, heardMono });
      }
    },
    stop: (): void => own.clear(),
  };
}

const checked = new WeakMap<object, Beat | undefined>();

/** A heartbeat that another controller shared; undefined if malformed. Checked once, since `changed` reads all heartbeats repeatedly. */
function beatOf(value: Json): Beat | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  if (!checked.has(value)) checked.set(value, Beat.safeParse(value).data);
  return checked.get(value);
}
