// “Convergent” (docs/replication.md): one connection: both controllers greet, pull missing transactions and push their own.
import { omitUndefined } from "#base/omit-undefined.ts";
import { MalformedPage } from "#crdt/page.ts";
import { dominates, isSameVector, toWire } from "#crdt/version-vector.ts";
import { differingBuckets } from "#crdt/digest.ts";
import type { Core } from "./replica-core.ts";
import {
  isForeignHello,
  parseMessage,
  protocols,
  protocolsText,
  speaks,
  type PeerMessage,
  type RefusalCode,
} from "./messages.ts";
import { PageSender } from "./page-sender.ts";
import type { Peer, Stream } from "./peer.ts";
import type { LinkEvents, PeerLink } from "./replica-ports.ts";
import { Pinger } from "./pinger.ts";
import { Puller } from "./puller.ts";
import { receivePush } from "./push.ts";
import type { SessionHost } from "./session-host.ts";

type Of<T extends PeerMessage["t"]> = Extract<PeerMessage, { t: T }>;

/** One connection to a peer: greetings both ways, then pulls, pushes and pings until it dies. */
export class Session implements LinkEvents, Stream {
  readonly peer: Peer;
  readonly #link: PeerLink;
  readonly #puller: Puller;
  readonly #core: Core;
  readonly #host: SessionHost;
  readonly #pages: PageSender;
  /** The last own transaction that was sent. */
  pushed: { readonly origin: string; readonly seq: number } = { origin: "", seq: 0 };
  /** The random id of the peer's process, and the (monotonic) time at which the connection opened. */
  boot = "";
  openedAt = 0;
  where = "";
  copies: string | undefined;
  #isWelcome = false;
  /** The peer's greeting, once it is accepted. */
  #greeting: Of<"hello"> | undefined;
  #isClosed = false;
  #helloAt: number;
  readonly #pinger: Pinger;

  constructor(core: Core, host: SessionHost, link: PeerLink) {
    this.#core = core;
    this.#host = host;
    this.#link = link;
    this.peer = core.peerOf(link.peer);
    this.#puller = new Puller(core, this, host.writer, () => host.synced(this));
    this.#pages = new PageSender(core, this);
    this.#helloAt = core.options.clock.mono();
    const { state, options } = core;
    this.send({
      t: "hello",
      cluster: options.cluster,
      id: options.id,
      origin: state.origin,
      boot: host.boot,
      ...omitUndefined({ at: options.at }),
      proto: protocols,
      ready: state.isWhole,
      vv: toWire(state.map.vector),
      ...core.underway(),
    });
    this.#pinger = new Pinger(core, this.peer, {
      send: (n) => this.#sendPing(n),
      onSilent: () => host.silent(this),
      onDead: () => this.close("silent"),
    });
  }

  /** Whether both sides have welcomed each other and the connection is not closed. */
  get isOpen(): boolean {
    return this.#isWelcome && this.#greeting !== undefined && !this.#isClosed;
  }

  get isDialled(): boolean {
    return this.#link.initiator;
  }

  pull(): void {
    this.#puller.pull();
  }

  send(message: PeerMessage): void {
    if (!this.#isClosed) this.#link.send(message);
  }

  close(reason: string): void {
    if (this.#isClosed) return;
    this.#link.close(reason);
    this.closed();
  }

  closed(): void {
    if (this.#isClosed) return;
    this.#isClosed = true;
    this.#puller.abandon();
    this.#pages.stop();
    this.#pinger.stop();
    this.#host.lost(this);
  }

  received(value: unknown, bytes: number): void {
    if (this.#isClosed || this.#core.isStopped) return;
    const message = parseMessage(value);
    if (!message && isForeignHello(value)) return this.refuse("PROTOCOL_UNKNOWN", protocolsText);
    if (!message) return this.malformed("a message that is none");
    this.#pinger.heard();
    this.peer.phi.heard(this.#core.options.clock.mono());
    try {
      this.#handle(message, bytes);
    } catch (error) {
      if (!(error instanceof MalformedPage)) throw error;
      this.malformed(error.message);
    }
  }

  malformed(what: string): void {
    this.#core.alarms.raise("PEER_MALFORMED", this.peer.id, `${this.peer.id} sent ${what}`);
    this.refuse("MALFORMED", what);
  }

  #handle(message: PeerMessage, bytes: number): void {
    if (message.t === "hello") return this.#hello(message);
    if (message.t === "welcome") return this.#welcome(message);
    if (message.t === "refuse") return this.#refused(message);
    if (!this.isOpen) return;
    switch (message.t) {
      case "push":
        return receivePush(this.#core, { stream: this, puller: this.#puller }, message);
      case "pull":
        this.peer.confirmed(message.vv, message.soon);
        return this.#pages.pull(message);
      case "credit":
        return this.#pages.credit(message.sync);
      case "page":
        return this.#puller.page(message, bytes);
      case "have":
        return this.#have(message);
      case "ping":
        this.send({ t: "pong", n: message.n, walls: this.#walls() });
        this.#pinger.pinged();
        this.#have(message);
        if (message.copies !== undefined)
          this.#core.duplicates.see(this.#core.options.id, message.copies, this.peer.id);
        return this.#compare(message);
      case "pong":
        this.#pong(message);
        return this.#watchClock();
      case "digest":
        return this.#repair(message);
      case "soft":
        return this.#host.soft.received(this.peer.id, message.entries);
    }
  }

  #hello(hello: Of<"hello">): void {
    this.boot = hello.boot;
    const { remote } = this.#link;
    const at = hello.at ?? "an address that it does not tell";
    this.where = remote === undefined ? at : `${at} (from ${remote})`;
    const refusal = this.#host.refusalFor(this, hello);
    if (refusal) {
      if (refusal.code === "NOT_REGISTERED") this.#core.generation.contradicted(hello);
      return this.refuse(refusal.code, refusal.message);
    }
    const rival = this.#host.duplicateOf(this);
    if (!rival) return this.#accept(hello);
    rival.probe((isAlive) => {
      if (this.#isClosed) return;
      if (isAlive) this.#host.refuseDuplicate(this, rival);
      else this.#accept(hello);
    });
  }

  #accept(hello: Of<"hello">): void {
    this.peer.confirmed(hello.vv, hello.soon);
    this.peer.isReady = hello.ready;
    this.peer.backOff.reset();
    this.#greeting = hello;
    this.send({ t: "welcome", proto: Math.min(protocols[1], hello.proto[1]), walls: this.#walls() });
    if (this.isOpen) this.#opened();
  }

  #welcome({ proto, walls }: Of<"welcome">): void {
    if (this.#isWelcome) return;
    if (!speaks([proto, proto])) return this.refuse("PROTOCOL_UNKNOWN", `${protocolsText}, and not ${proto}`);
    this.#isWelcome = true;
    this.peer.rtt.sample(this.#core.guard.sample(this.peer.id, this.#helloAt, walls));
    this.#watchClock();
    if (this.isOpen) this.#opened();
  }

  #opened(): void {
    this.peer.refusal = undefined;
    this.#core.refusals.connected(this.peer.id);
    this.#core.heard();
    this.#core.duplicates.accepted(this.peer.id);
    // Only now: a peer that does not let this controller in may be connected to another process with its id.
    if (this.#greeting) this.#core.generation.heard(this.peer.id, this.#greeting);
    this.openedAt = this.#core.options.clock.mono();
    if (!this.#host.opened(this)) return;
    // The first ping was scheduled before the round trip was known.
    this.#pinger.restart();
    // Both sides pull: with TLS 1.3 either side may miss the first messages of the other.
    this.#puller.pull();
    const { state } = this.#core;
    this.pushed = { origin: state.origin, seq: this.peer.acked?.get(state.origin) ?? 0 };
    this.#host.outbox.push(this);
    for (const entries of this.#host.soft.pages()) this.send({ t: "soft", entries });
  }

  #refused({ code, message }: Of<"refuse">): void {
    this.peer.refusal = { code, message };
    if (code === "TWO_COPIES") this.#core.duplicates.refused(this.peer.id, message);
    else this.#core.refusals.note(this.peer.id, { by: "peer", code, message });
    if (code === "EQUIVOCATION") this.#core.generation.dispute();
    this.close(code);
  }

  refuse(code: RefusalCode, message: string): void {
    // MALFORMED and TWO_COPIES have alarms of their own.
    if (code !== "MALFORMED" && code !== "TWO_COPIES")
      this.#core.refusals.note(this.peer.id, { by: "us", code, message });
    this.send({ t: "refuse", code, message });
    this.close(code);
  }

  #have(message: Of<"have"> | Of<"ping">): void {
    const { vv, ready, soon } = message;
    this.peer.isReady = ready;
    this.peer.confirmed(vv, soon);
    this.#core.generation.heard(this.peer.id, message);
    if (!dominates(this.#core.accepted, new Map(vv))) this.#puller.pull();
  }

  sendHave(): void {
    const { map, isWhole: ready } = this.#core.state;
    this.send({ t: "have", ready, vv: toWire(map.vector), ...this.#core.underway() });
  }

  /** Equal version vectors imply equal states. Otherwise a disk or a program is broken, and both sides exchange the differing registers. */
  #compare({ vv, digest }: Of<"ping">): void {
    const { map } = this.#core.state;
    const own = this.#core.digest().digest;
    if (!isSameVector(map.vector, new Map(vv)) || digest === undefined || own === undefined || digest === own) return;
    const text = `${this.peer.id} has seen the same transactions and holds other values; they are being exchanged`;
    this.#core.alarms.raise("STATE_DIVERGENCE", this.peer.id, text);
    this.send({ t: "digest", vv, sums: map.digest.sums() });
  }

  #repair({ vv, sums }: Of<"digest">): void {
    const { map } = this.#core.state;
    if (!isSameVector(map.vector, new Map(vv)) || this.#core.digest().digest === undefined) return;
    const buckets = differingBuckets(map.digest.sums(), sums);
    if (buckets.length > 0) this.#puller.pull(buckets);
  }

  #watchClock(): void {
    const offset = this.#core.guard.offsetOf(this.peer.id) ?? 0;
    const isOff = this.#core.guard.driftOf(this.peer.id) >= this.#core.tuning.driftWarning;
    const text = `the clock of ${this.peer.id} differs by ${Math.round(offset)} ms`;
    this.#core.alarms.set(isOff, "CLOCK_DRIFT", this.peer.id, text);
  }

  #walls(): readonly [number, number] {
    const wall = this.#core.options.clock.wall();
    return [wall, wall];
  }

  hasNews(): void {
    this.#pinger.hurry();
  }

  #sendPing(n: number): void {
    if (!this.isOpen) return;
    const { map, isWhole: ready } = this.#core.state;
    const vv = toWire(map.vector);
    const rest = { ...this.#core.underway(), ...this.#core.digest(), ...omitUndefined({ copies: this.copies }) };
    this.copies = undefined;
    this.send({ t: "ping", n, ready, vv, ...rest });
  }

  #pong({ n, walls }: Of<"pong">): void {
    const sentAt = this.#pinger.answered(n);
    if (sentAt === undefined) return;
    this.peer.rtt.sample(this.#core.guard.sample(this.peer.id, sentAt, walls));
  }

  probe(done: (isAlive: boolean) => void): void {
    this.#pinger.probe(done);
  }
}
