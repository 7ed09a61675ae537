// “Watched” (docs/replication.md): the alarms of a controller; EQUIVOCATION and PEER_MALFORMED last until the process ends.
export type AlarmCode =
  | "CLOCK_SKEW" // an origin's stamps lie ahead of this controller's clock: its writes wait
  | "CLOCK_DRIFT" // a peer's clock differs by 500 ms or more
  | "FENCED" // this controller's clock is too far from its peers': read-only
  | "CLOCK_JUMP" // this controller's wall clock jumped, and no peer confirms it yet: read-only
  | "CLOCK_AHEAD" // issued or seen stamps lie ahead of this controller's clock: read-only until then
  | "TWO_COPIES" // two processes run as one controller
  | "EQUIVOCATION" // one dot, two contents: a clone or a restored backup
  | "STATE_DIVERGENCE" // equal version vectors, different state
  | "QUARANTINED" // registers that this version cannot read
  | "CONFLICTS_CAPPED"
  | "TOMBSTONES" // many tombstones, or some kept for over a day: a controller is away
  | "STORAGE_FULL"
  | "PEER_MALFORMED"
  | "REFUSED" // a peer refuses this controller
  | "REFUSING" // this controller refuses a peer
  | "CERTIFICATE_ENDS" // a certificate of this controller ends within 30 days
  | "TURNED_OUT" // a member answers that this controller's key was revoked, and no other member lets it in
  | "EMPTY_STATE"; // a founder without state, and no peer to get it from

export interface Alarm {
  readonly code: AlarmCode;
  /** The peer, origin or subject of the alarm. */
  readonly about: string;
  readonly message: string;
  /** Wall clock, ms. */
  readonly since: number;
}

/** The present alarms of a controller, at most one for each code and subject. */
export class Alarms {
  readonly #alarms = new Map<string, Alarm>();
  readonly #wall: () => number;
  readonly #onRaise: (alarm: Alarm) => void;

  constructor(wall: () => number, onRaise: (alarm: Alarm) => void) {
    this.#wall = wall;
    this.#onRaise = onRaise;
  }

  raise(code: AlarmCode, about: string, message: string): void {
    const id = `${code} ${about}`;
    const known = this.#alarms.get(id);
    const alarm = { code, about, message, since: known?.since ?? this.#wall() };
    this.#alarms.set(id, alarm);
    if (!known) this.#onRaise(alarm);
  }

  clear(code: AlarmCode, about: string): void {
    this.#alarms.delete(`${code} ${about}`);
  }

  set(isOn: boolean, code: AlarmCode, about: string, message: string): void {
    if (isOn) this.raise(code, about, message);
    else this.clear(code, about);
  }

  has(code: AlarmCode, about: string): boolean {
    return this.#alarms.has(`${code} ${about}`);
  }

  all(): readonly Alarm[] {
    return [...this.#alarms.values()];
  }
}
