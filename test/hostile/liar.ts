import type { Chance } from "#support/random.ts";

/** One stream to an honest controller; lines of JSON both ways. */
export interface Wire {
  readonly peer: string;
  readonly send: (message: object) => void;
  /** Bytes that are no message; where there are no bytes, nothing. */
  readonly raw: (text: string) => void;
  readonly close: () => void;
}

export interface Talk {
  readonly received: (message: unknown) => void;
  readonly closed: () => void;
}

type Vector = [origin: string, seq: number][];
type Row = readonly [
  key: string,
  text: string | null,
  ms: number,
  c: number,
  origin: number,
  seq: number,
  context: number,
];
interface Page {
  readonly origins: readonly string[];
  readonly contexts: readonly (readonly number[])[];
  readonly registers: readonly Row[];
}
type Message = Readonly<Record<string, unknown>> & { readonly t: string };

/** What a liar may be given to; each seed draws some. */
export const habits = [
  "own seqs", // claims transactions of its own that never were
  "others' seqs", // claims more of others than they wrote
  "invented origins",
  "invented incarnations", // of honest controllers
  "forged writes", // registers under others' origins, new dots
  "same dots", // other contents under dots that exist
  "overwritten revocations", // under its own origin
  "full exchanges",
  "floors",
  "stamps ahead",
  "odd stamps",
  "digests",
  "soft state",
  "sizes",
  "page loops",
  "silence",
  "storms", // connects and disconnects
  "clocks",
  "half frames",
  "refusals",
  "soon",
] as const;
export type Habit = (typeof habits)[number];

const junk: readonly unknown[] = [
  null,
  true,
  -1,
  0.5,
  1e308,
  2 ** 53,
  "",
  "\u0000",
  "__proto__",
  "ffffffffffffffff",
  [],
  [[]],
  {},
  [["x", 1]],
  { length: 3 },
];

/**
 * A registered member of the cluster that lies in every field that it can, as a seed has it. It knows the protocol from its
 * description (docs/adr/0501, 0502) and shares no code with the product; what it does not know yet it pulls first.
 */
export class Liar {
  readonly id: string;
  readonly habits: ReadonlySet<Habit>;
  readonly #cluster: string;
  readonly #wall: () => number;
  readonly #chance: Chance;
  readonly #talks = new Set<{ readonly wire: Wire; sync: number; isSilent: boolean }>();
  readonly #vector = new Map<string, number>();
  readonly #rows = new Map<string, { readonly text: string | null; readonly origin: string; readonly seq: number }>();
  #seq = 0;
  told = 0;

  constructor({
    id,
    cluster,
    wall,
    chance,
    only,
  }: {
    readonly id: string;
    readonly cluster: string;
    readonly wall: () => number;
    readonly chance: Chance;
    /** These habits alone, whatever the seed would have. */
    readonly only?: ReadonlySet<Habit> | undefined;
  }) {
    this.id = id;
    this.#cluster = cluster;
    this.#wall = wall;
    this.#chance = chance;
    const drawn = new Set(habits.filter(() => chance.isLucky(0.35)));
    this.habits = only ?? drawn;
  }

  /** Whether it would rather start anew with everybody now. */
  get isStorming(): boolean {
    return this.#is("storms") && this.#chance.isLucky(0.3);
  }

  connected(wire: Wire): Talk {
    const talk = { wire, sync: 0, isSilent: this.#is("silence") && this.#chance.isLucky(0.5) };
    this.#talks.add(talk);
    this.#send(wire, {
      t: "hello",
      cluster: this.#cluster,
      id: this.id,
      origin: `${this.id}#1`,
      boot: `b${this.#chance.below(1e9)}`,
      proto: [1, 2],
      ready: !this.#chance.isLucky(0.05),
      vv: this.#claim(),
      ...this.#soon(),
    });
    return {
      received: (value) => {
        if (!talk.isSilent && typeof value === "object" && value !== null) this.#answer(talk, value as Message);
      },
      closed: () => void this.#talks.delete(talk),
    };
  }

  closeAll(): void {
    for (const { wire } of this.#talks) wire.close();
  }

  /** Says something that nobody asked for, to one of those it speaks with. */
  tick(): void {
    const talks = [...this.#talks].filter(({ isSilent }) => !isSilent);
    if (talks.length === 0) return;
    const talk = this.#chance.pick(talks);
    const { wire } = talk;
    const lies: (() => void)[] = [
      () => this.#send(wire, { t: "have", ready: true, vv: this.#claim(), ...this.#soon() }),
      () =>
        this.#send(wire, {
          t: "ping",
          n: this.#chance.below(1e6),
          ready: true,
          vv: this.#claim(),
          digest: this.#digest(),
        }),
      () => this.#send(wire, this.#push()),
      () =>
        this.#send(wire, {
          t: "pull",
          sync: ++talk.sync,
          vv: this.#is("others' seqs") ? this.#claim() : [],
          window: 64,
        }),
      () =>
        this.#send(wire, {
          t: "page",
          sync: this.#chance.below(50),
          index: 0,
          full: true,
          page: this.#page(),
          end: this.#end(true),
        }),
      () => this.#send(wire, { t: "credit", sync: this.#chance.below(10) }),
      ...(this.#is("soft state") ? [() => this.#send(wire, { t: "soft", entries: this.#soft() })] : []),
      ...(this.#is("digests") ? [() => this.#send(wire, this.#sums())] : []),
      ...(this.#is("refusals")
        ? [
            () =>
              this.#send(wire, {
                t: "refuse",
                code: this.#chance.pick(["EQUIVOCATION", "NOT_REGISTERED", "MALFORMED"]),
                message: "go away",
              }),
          ]
        : []),
      ...(this.#is("half frames")
        ? [
            () =>
              wire.raw(
                this.#chance.pick([
                  '{"t":"ping","n":',
                  "\n\n",
                  "[".repeat(5_000) + "\n",
                  "\u0000\u0001\n",
                  "nonsense\n",
                ]),
              ),
          ]
        : []),
    ];
    this.#chance.pick(lies)();
  }

  #is(habit: Habit): boolean {
    return this.habits.has(habit);
  }

  /** One message in fifteen has one field replaced by something else. */
  #send(wire: Wire, message: Message): void {
    this.told++;
    wire.send(this.#chance.isLucky(1 / 15) ? (this.#spoiled(message) as object) : message);
  }

  #spoiled(value: unknown): unknown {
    if (typeof value !== "object" || value === null || this.#chance.isLucky(0.15)) return this.#chance.pick(junk);
    const copy: unknown = structuredClone(value);
    const names = Object.keys(copy as object);
    if (names.length === 0) return this.#chance.pick(junk);
    const name = this.#chance.pick(names);
    const holder = copy as Record<string, unknown>;
    holder[name] = this.#spoiled(holder[name]);
    return copy;
  }

  #answer(talk: { readonly wire: Wire; sync: number }, message: Message): void {
    const { wire } = talk;
    const wall = this.#wall() + (this.#is("clocks") ? this.#chance.between(-1e6, 1e6) : 0);
    switch (message.t) {
      case "hello":
        this.#learn(message["vv"] as Vector);
        this.#send(wire, { t: "welcome", proto: 2, walls: [wall, wall] });
        return this.#send(wire, { t: "pull", sync: ++talk.sync, vv: [], window: 64 });
      case "ping":
        this.#learn(message["vv"] as Vector);
        return this.#send(wire, { t: "pong", n: message["n"], walls: [wall, wall] });
      case "page":
        return this.#read(message["page"] as Page);
      case "pull":
        return this.#serve(wire, message);
      case "have":
        return this.#learn(message["vv"] as Vector);
    }
  }

  #learn(vector: Vector): void {
    for (const [origin, seq] of vector) this.#vector.set(origin, Math.max(seq, this.#vector.get(origin) ?? 0));
  }

  #read({ origins, registers }: Page): void {
    for (const [key, text, , , origin, seq] of registers)
      this.#rows.set(key, { text, origin: origins[origin] ?? "", seq });
  }

  /** Answers a pull: with nothing, with lies, or with pages that never end. */
  #serve(wire: Wire, pull: Message): void {
    const full = this.#is("full exchanges") && this.#chance.isLucky(0.5);
    const sync = pull["sync"];
    const count = this.#is("page loops") ? this.#chance.below(30) : this.#chance.below(3);
    for (let index = 0; index < count; index++)
      this.#send(wire, { t: "page", sync, index: this.#chance.isLucky(0.1) ? 0 : index, full, page: this.#page() });
    if (this.#is("page loops") && this.#chance.isLucky(0.5)) return;
    this.#send(wire, { t: "page", sync, index: count, full, page: this.#page(), end: this.#end(full) });
  }

  /** What it says that it has. */
  #claim(): Vector {
    const chance = this.#chance;
    const vector = new Map(this.#vector);
    vector.set(`${this.id}#1`, this.#seq + (this.#is("own seqs") ? chance.below(1e6) : 0));
    if (this.#is("others' seqs") && chance.isLucky(0.5))
      for (const [origin, seq] of this.#vector)
        if (chance.isLucky(0.5)) vector.set(origin, seq + chance.below(chance.pick([2, 1000, 2 ** 40])));
    if (this.#is("invented origins") && chance.isLucky(0.3))
      for (let index = chance.below(chance.pick([3, 300, 3_000])); index > 0; index--)
        vector.set(`ghost-${chance.below(1e9)}#1`, 1);
    if (this.#is("invented incarnations") && chance.isLucky(0.3))
      for (const origin of this.#vector.keys())
        vector.set(`${origin.split("#")[0]}#fake${chance.below(99)}`, chance.below(1e6));
    if (chance.isLucky(0.1)) vector.delete(chance.pick([...vector.keys()]));
    return [...vector];
  }

  #soon(): object {
    return this.#is("soon") ? { soon: this.#claim() } : {};
  }

  #end(full: boolean): object {
    if (full && this.#chance.isLucky(0.5)) {
      // One that looks due: nobody else has seen what it says to have forgotten.
      const newest: Vector = [[`${this.id}#1`, ++this.#seq]];
      const hlc = (this.#wall() - 1_000).toString(16).padStart(12, "0") + "0000";
      return { upto: [...this.#vector, ...newest], hlc, full: { floor: newest, hlc } };
    }
    const floor = this.#is("floors") ? this.#claim() : [...this.#vector];
    const hlc = this.#hlc();
    return { upto: this.#claim(), ...this.#soon(), hlc, ...(full ? { full: { floor, hlc } } : {}) };
  }

  #ms(): number {
    const wall = Math.floor(this.#wall());
    if (!this.#is("stamps ahead")) return wall;
    // Often just below what is taken.
    return wall + this.#chance.pick([9_900, 9_900, this.#chance.below(this.#chance.pick([9_000, 60_000, 1e12]))]);
  }

  #hlc(): string {
    return this.#ms().toString(16).padStart(12, "0") + "ffff";
  }

  /** Some registers, of its own or of others. */
  #page(): Page {
    const origins = [`${this.id}#1`];
    const contexts: number[][] = [[]];
    const registers: Row[] = [];
    const add = (key: string, text: string | null, origin: string, seq: number): void => {
      if (!origins.includes(origin)) origins.push(origin);
      const c = this.#is("odd stamps") ? this.#chance.pick([0, 65_535, 65_536, -1, 0.5]) : 1;
      registers.push([key, text, this.#ms(), c, origins.indexOf(origin), seq, 0]);
    };
    const chance = this.#chance;
    const size = this.#is("sizes") ? chance.pick([10, 1_000, 70_000]) : 10;
    const text = JSON.stringify({ v: `lie ${"x".repeat(size)}` });
    const isTwice = this.#is("same dots") && chance.isLucky(0.5);
    if (chance.isLucky(0.5))
      add(
        `object/Lies/${chance.below(20)}`,
        chance.isLucky(0.2) ? null : isTwice ? `${chance.below(1e6)}` : text,
        `${this.id}#1`,
        isTwice ? Math.max(1, this.#seq) : ++this.#seq,
      );
    // Who is a member, any member may change (ADR 0511); it is not what is tried here.
    const known = [...this.#rows].filter(([each]) => !/^controller\/.*\/auth$/.test(each));
    if (known.length === 0) return { origins, contexts, registers };
    const [key, { origin, seq }] = chance.pick(known);
    const last = this.#vector.get(origin) ?? seq;
    if (this.#is("forged writes")) add(key, chance.isLucky(0.5) ? null : text, origin, last + 1 + chance.below(3));
    if (this.#is("same dots")) add(key, chance.isLucky(0.5) ? null : text, origin, seq);
    if (this.#is("overwritten revocations"))
      for (const [revoked] of known.filter(([each]) => /^(revoked|cert)\//.test(each)).slice(0, 5))
        add(revoked, chance.isLucky(0.5) ? null : text, `${this.id}#1`, ++this.#seq);
    if (this.#is("invented origins")) add(`object/Lies/ghost`, text, `ghost-${chance.below(1e6)}#1`, 1);
    if (chance.isLucky(0.3)) contexts[0] = [0, chance.below(1e6)];
    return { origins, contexts, registers };
  }

  #push(): Message {
    const from = Math.max(0, this.#seq - (this.#is("same dots") ? 1 : 0));
    const page = this.#page();
    const others = [...this.#vector.keys()];
    const isOwn = others.length === 0 || this.#chance.isLucky(0.8);
    const upto = this.#seq + (this.#is("own seqs") ? this.#chance.below(1_000) : 0);
    return { t: "push", page, origin: isOwn ? `${this.id}#1` : this.#chance.pick(others), from, upto };
  }

  #hex(): string {
    return this.#chance
      .below(2 ** 32)
      .toString(16)
      .padStart(16, "0");
  }

  #digest(): string | undefined {
    return this.#is("digests") ? this.#hex() : undefined;
  }

  #sums(): Message {
    return { t: "digest", vv: [...this.#vector], sums: Array.from({ length: 256 }, () => this.#hex()) };
  }

  #soft(): object[] {
    const nodes = [...this.#vector.keys()].map((origin) => `life/${origin.split("#")[0]}`);
    const text = JSON.stringify({ lie: "x".repeat(this.#is("sizes") ? 60_000 : 10) });
    return Array.from({ length: this.#is("sizes") ? 40 : 3 }, () => ({
      key: this.#chance.isLucky(0.5) && nodes.length > 0 ? this.#chance.pick(nodes) : `k${this.#chance.below(1e9)}`,
      boot: 2 ** 52,
      seq: this.#chance.below(1e9),
      text,
    }));
  }
}
