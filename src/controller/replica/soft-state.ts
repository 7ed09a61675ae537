// “Bounded” (docs/replication.md): facts in no journal (a last heartbeat), in a limited room for each sender.
import { isJson } from "#crdt/register.ts";
import type { SoftEntry } from "./messages.ts";
import type { Json, SoftValue } from "./replica.ts";
import type { Clock, ReplicaTimers } from "./replica-ports.ts";

/** Limits for one sender; a controller that hears 10,000 nodes needs half of the entries, and about a quarter of the size. */
export interface SoftLimits {
  readonly entries: number;
  /** The size of all values and keys, in UTF-16 units. */
  readonly size: number;
  /** The size of one value, in UTF-16 units. */
  readonly value: number;
  /** The time for which a value is kept that is not sent again, ms. */
  readonly lifetime: number;
}

export const softLimits: SoftLimits = { entries: 20_000, size: 8 * 1024 * 1024, value: 4_096, lifetime: 86_400_000 };

export interface SoftPorts extends Pick<Clock, "mono">, Pick<ReplicaTimers, "after"> {
  /** Sends values to all connected peers. */
  readonly spread: (entries: readonly SoftEntry[]) => void;
}

interface HeldEntry extends SoftEntry {
  readonly receivedMono: number;
  /** The parsed text, from the first read on; its `value` is undefined if the text is no JSON. */
  read?: { readonly value: Json | undefined };
}

interface SenderValues {
  readonly held: Map<string, HeldEntry>;
  size: number;
  /** The time at which expired values were last removed. */
  sweptMono: number;
}

/**
 * Soft state: facts that are true for a while (such as a node's last heartbeat), never journaled. Each controller shares its
 * own values alone: its id ends the key, and peers accept such keys over its own link only. Within one process (`boot`) the
 * newest seq wins; another process's value always replaces the present one.
 */
export class SoftState {
  readonly #own: string;
  readonly #ports: SoftPorts;
  readonly #limits: SoftLimits;
  readonly #values = new Map<string, SenderValues>();
  /** Own values that the peers do not have yet, by key. */
  readonly #unsent = new Map<string, SoftEntry>();
  #cancelSending: (() => void) | undefined;

  constructor(own: string, ports: SoftPorts, limits: SoftLimits = softLimits) {
    this.#own = own;
    this.#ports = ports;
    this.#limits = limits;
  }

  /**
   * Stores a value of this controller, and sends it to the peers: at once if `withinMs` is 0, else together with others, when the first
   * that waits has waited for its `withinMs`.
   */
  share(key: string, version: Pick<SoftEntry, "boot" | "seq">, value: Json, withinMs: number): void {
    const entry = { key: `${key}/${this.#own}`, ...version, text: JSON.stringify(value) };
    if (!this.#take(this.#own, entry)) return;
    this.#unsent.set(entry.key, entry);
    if (withinMs === 0) this.#send();
    else this.#cancelSending ??= this.#ports.after(withinMs, () => this.#send());
  }

  #send(): void {
    this.#cancelSending?.();
    this.#cancelSending = undefined;
    const entries = [...this.#unsent.values()];
    this.#unsent.clear();
    for (const page of pagesOf(entries)) this.#ports.spread(page);
  }

  /** Stores a peer's values; ignores those of other controllers, which earlier versions pass on. */
  received(sender: string, entries: readonly SoftEntry[]): void {
    for (const entry of entries) if (entry.key.endsWith(`/${sender}`)) this.#take(sender, entry);
  }

  /** All values of this controller, for a peer that has just connected. */
  *pages(): Iterable<readonly SoftEntry[]> {
    const own = this.#values.get(this.#own)?.held.values() ?? [];
    yield* pagesOf(Array.from(own, ({ key, boot, seq, text }) => ({ key, boot, seq, text })));
  }

  /** Forgets the values of all other senders. */
  keepOnly(senders: readonly string[]): void {
    for (const sender of this.#values.keys())
      if (sender !== this.#own && !senders.includes(sender)) this.#values.delete(sender);
  }

  #take(sender: string, entry: SoftEntry): boolean {
    const { entries, size, value } = this.#limits;
    let values = this.#values.get(sender);
    if (!values) this.#values.set(sender, (values = { held: new Map(), size: 0, sweptMono: this.#ports.mono() }));
    const known = values.held.get(entry.key);
    if (entry.text.length > value || (known?.boot === entry.boot && known.seq >= entry.seq)) return false;
    this.#expire(values);
    const grown = values.size + sizeOf(entry) - (known ? sizeOf(known) : 0);
    if ((!known && values.held.size >= entries) || grown > size) return false;
    values.held.set(entry.key, { ...entry, receivedMono: this.#ports.mono() });
    values.size = grown;
    return true;
  }

  /** Removes expired values, at most 24 times a lifetime: a sender that fills its limits must not cost an iteration each time. */
  #expire(values: SenderValues): void {
    const now = this.#ports.mono();
    const bound = now - this.#limits.lifetime;
    if (now - values.sweptMono < this.#limits.lifetime / 24) return;
    values.sweptMono = now;
    for (const [key, entry] of values.held)
      if (entry.receivedMono < bound) {
        values.held.delete(key);
        values.size -= sizeOf(entry);
      }
  }

  /** Each controller's value of a key, except texts that are no JSON. */
  *of(key: string): Iterable<SoftValue> {
    for (const [sender, { held }] of this.#values) {
      const found = held.get(`${key}/${sender}`);
      if (!found) continue;
      found.read ??= { value: isJson(found.text) ? (JSON.parse(found.text) as Json) : undefined };
      const { value } = found.read;
      if (value !== undefined) yield { sender, value, receivedMono: found.receivedMono };
    }
  }

  /** The keys of all values, with duplicates. */
  *keys(): Iterable<string> {
    for (const [sender, values] of this.#values) {
      this.#expire(values);
      for (const key of values.held.keys()) yield key.slice(0, -sender.length - 1);
    }
  }
}

function* pagesOf(entries: readonly SoftEntry[]): Iterable<readonly SoftEntry[]> {
  for (let at = 0; at < entries.length; at += 500) yield entries.slice(at, at + 500);
}

function sizeOf({ key, text }: SoftEntry): number {
  return key.length + text.length;
}
