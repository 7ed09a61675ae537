// “Watched” (docs/replication.md): a refusal between two controllers raises an alarm on both.
import type { AlarmCode } from "./alarms.ts";
import type { ReplicaContext } from "./replica-context.ts";

/** A refusal between two controllers, and which of them refuses. */
export interface PeerRefusal {
  readonly by: "us" | "peer";
  readonly code: string;
  readonly message: string;
}

/** The time without a further refusal after which an alarm is cleared, ms; a refused controller tries again every few seconds. */
const alarmLifeMs = 60_000;
/** The most alarms about refusals at a time. */
const maxNamed = 64;
/** Refusals without an alarm: they end by themselves, since the peer has only just started. */
const passingRefusals: ReadonlySet<string> = new Set(["CONTROLLER_JOINING", "NOT_READY"]);

const wayBackIn =
  "To let this controller in again: kcore controller join --fresh on its machine, then deploy it; else: systemctl disable --now kcore-controller";

/**
 * Codes by which a member answers that it does not know this controller or its key. A member restored from an older backup
 * answers so, too, and newer writes may exist here alone. So only `KEY_REVOKED`, as after a removal, turns this controller out.
 */
const unknownCodes: ReadonlySet<string> = new Set(["KEY_UNREGISTERED", "CONTROLLER_UNKNOWN", "NOT_REGISTERED"]);

/** Raises and clears the alarms about refusals between this controller and others, in both directions. */
export class Refusals {
  readonly #core: ReplicaContext;
  /** The cancellations of the alarms' timers, by code and controller. */
  readonly #timers = new Map<string, () => void>();
  /** The last refusal of this controller by each peer, until both accept each other. */
  readonly #last = new Map<string, Omit<PeerRefusal, "by">>();
  #turnedOut: string | undefined;

  constructor(core: ReplicaContext) {
    this.#core = core;
  }

  /** The answer of a member that this controller's key was revoked; undefined while any member lets this controller in. */
  get turnedOut(): string | undefined {
    const isLetIn = [...this.#core.peers.values()].some(({ stream }) => stream?.isOpen === true);
    return isLetIn ? undefined : this.#turnedOut;
  }

  /** The peer's last refusal of this controller; undefined once both have accepted each other. */
  lastOf(peer: string): Omit<PeerRefusal, "by"> | undefined {
    return this.#last.get(peer);
  }

  remember(peer: string, { code, message }: Omit<PeerRefusal, "by">): void {
    this.#last.set(peer, { code, message });
  }

  /** Called for each refusal. `about`: the peer's id, or the address that was dialled. */
  note(about: string, refusal: PeerRefusal): void {
    const { alarms, peers, options } = this.#core;
    const { by, code, message } = refusal;
    const peer = peers.get(about);
    // Both sides dial: a passing refusal does not count while another connection is open.
    if (by === "peer" && peer?.stream?.isOpen === true && passingRefusals.has(code)) return;
    if (peer && by === "peer") this.remember(about, refusal);
    if (passingRefusals.has(code) || about === options.id) return;
    if (by === "peer" && code === "KEY_REVOKED" && this.#core.others.includes(about)) this.#turnOut(about, refusal);
    const alarm: AlarmCode = by === "peer" ? "REFUSED" : "REFUSING";
    const [text, remedy] =
      by === "us"
        ? [`this controller refuses ${about}: ${message}`, ""]
        : [`${about} refuses this controller: ${message}`, unknownCodes.has(code) ? `. ${remedyFor(about)}` : ""];
    const id = `${alarm} ${about}`;
    const cancel = this.#timers.get(id);
    if (cancel === undefined && this.#timers.size >= maxNamed) return;
    cancel?.();
    alarms.raise(alarm, about, `${text} (${code})${remedy}`);
    this.#timers.set(
      id,
      this.#core.after(alarmLifeMs, () => this.#forget(alarm, about)),
    );
  }

  #turnOut(member: string, { code, message }: PeerRefusal): void {
    this.#turnedOut = `${member} answers that this controller is no member of its cluster: ${message} (${code})`;
    if (this.turnedOut === undefined) return;
    const { alarms, options } = this.#core;
    alarms.raise("TURNED_OUT", options.id, `${this.turnedOut}; it serves no request. ${wayBackIn}`);
  }

  /** Called when this controller and a peer have accepted each other. */
  connected(about: string): void {
    this.#turnedOut = undefined;
    this.#last.delete(about);
    this.#core.alarms.clear("TURNED_OUT", this.#core.options.id);
    this.#forget("REFUSED", about);
    this.#forget("REFUSING", about);
  }

  #forget(alarm: AlarmCode, about: string): void {
    const id = `${alarm} ${about}`;
    this.#timers.get(id)?.();
    this.#timers.delete(id);
    this.#core.alarms.clear(alarm, about);
  }
}

function remedyFor(member: string): string {
  return `If ${member} was restored from an older backup: stop it, and run kcore controller join --fresh on its machine. If this one was removed: the same on this machine`;
}
