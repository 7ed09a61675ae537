// “Convergent” (docs/replication.md): one connection: both controllers greet, pull missing transactions and push their own.
import { omitUndefined } from "#base/omit-undefined.ts";
import { MalformedPage } from "#crdt/page.ts";
import { dominates, toWire } from "#crdt/version-vector.ts";
import { watchDrift } from "./clock-alarms.ts";
import { inBackground } from "./commit-queue.ts";
import type { Core } from "./replica-core.ts";
import {
  isForeignHello,
  parsePeerMessage,
  protocols,
  protocolsText,
  speaks,
  type MessageOf,
  type PeerMessage,
  type RefusalCode,
} from "./messages.ts";
import { PageSender } from "./page-sender.ts";
import type { Peer, PeerProcess, PeerStream } from "./peer.ts";
import type { LinkEvents, PeerLink } from "./replica-ports.ts";
import { Pinger } from "./pinger.ts";
import { Puller } from "./puller.ts";
import { receivePush } from "./push.ts";
import { divergingBuckets, reportDivergence } from "./repair.ts";
import type { SessionHost } from "./session-host.ts";

/** One connection to a peer: greetings both ways, then pulls, pushes and pings until it dies. */
export class PeerSession implements LinkEvents, PeerStream {
  readonly peer: Peer;
  readonly #link: PeerLink;
  readonly #puller: Puller;
  readonly #core: Core;
  readonly #host: SessionHost;
  readonly #pages: PageSender;
  #process: PeerProcess = { id: "", address: "" };
  #openedAt = 0;
  /** The report of a process under the peer's identity, for the next ping. */
  #duplicateReport: string | undefined;
  #isWelcome = false;
  /** The peer's greeting, once it is accepted. */
  #greeting: MessageOf<"hello"> | undefined;
  #isClosed = false;
  /** The (monotonic) time at which this side greeted. */
  readonly #greetedAt: number;
  readonly #pinger: Pinger;

  constructor(core: Core, host: SessionHost, link: PeerLink) {
    this.#core = core;
    this.#host = host;
    this.#link = link;
    this.peer = core.peerOf(link.peer);
    this.#puller = new Puller(core, this, host.writer, () => host.synced(this));
    this.#pages = new PageSender(core, this);
    this.#greetedAt = core.options.clock.mono();
    const { state, options } = core;
    this.send({
      t: "hello",
      cluster: options.cluster,
      id: options.id,
      origin: core.generation.origin,
      boot: host.processId,
      ...omitUndefined({ at: options.at }),
      proto: protocols,
      ready: state.isWhole,
      vv: toWire(state.map.vector),
      ...core.commits.underway(),
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

  get process(): PeerProcess {
    return this.#process;
  }

  get openedAt(): number {
    return this.#openedAt;
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

  received(value: unknown): void {
    if (this.#isClosed || this.#core.isStopped) return;
    const message = parsePeerMessage(value);
    if (!message && isForeignHello(value)) return this.refuse("PROTOCOL_UNKNOWN", protocolsText);
    if (!message) return this.malformed("a message of an unknown form");
    this.#pinger.heard();
    this.peer.phi.heard(this.#core.options.clock.mono());
    try {
      this.#handle(message);
    } catch (error) {
      if (!(error instanceof MalformedPage)) throw error;
      this.malformed(error.message);
    }
  }

  malformed(what: string): void {
    this.#core.alarms.raise("PEER_MALFORMED", this.peer.id, `${this.peer.id} sent ${what}`);
    this.refuse("MALFORMED", what);
  }

  #handle(message: PeerMessage): void {
    if (message.t === "hello") return this.#hello(message);
    if (message.t === "welcome") return this.#welcome(message);
    if (message.t === "refuse") return this.#refused(message);
    if (!this.isOpen) return;
    switch (message.t) {
      case "push":
        return receivePush(this.#core, { stream: this, puller: this.#puller }, message);
      case "pull":
        this.peer.acknowledged(message);
        return inBackground(this.#pages.pull(message));
      case "credit":
        return inBackground(this.#pages.credit(message.sync));
      case "page":
        return this.#puller.receivePage(message);
      case "have":
        return this.#have(message);
      case "ping":
        this.send({ t: "pong", n: message.n, walls: this.#wallsSince(this.#core.options.clock.wall()) });
        this.#pinger.pinged();
        this.#have(message);
        if (message.copies !== undefined)
          this.#core.duplicates.noteSighting(this.#core.options.id, message.copies, this.peer.id);
        return reportDivergence(this.#core, this, message);
      case "pong":
        return this.#pong(message);
      case "digest": {
        const buckets = divergingBuckets(this.#core, message);
        if (buckets.length > 0) this.#puller.pull(buckets);
        return;
      }
      case "soft":
        return this.#host.soft.received(this.peer.id, message.entries);
    }
  }

  #hello(hello: MessageOf<"hello">): void {
    const arrivedAt = this.#core.options.clock.wall();
    const { remote } = this.#link;
    const at = hello.at ?? "an address that it does not tell";
    this.#process = { id: hello.boot, address: remote === undefined ? at : `${at} (from ${remote})` };
    const refusal = this.#host.refusalFor(this, hello);
    if (refusal) {
      if (refusal.code === "NOT_REGISTERED") this.#core.generation.contradicted(hello);
      return this.refuse(refusal.code, refusal.message);
    }
    const rival = this.#host.duplicateOf(this);
    if (rival) inBackground(this.#acceptUnlessAlive(rival, hello, arrivedAt));
    else this.#accept(hello, arrivedAt);
  }

  /** Accepts the peer unless another process with its identity still answers on its own connection. */
  async #acceptUnlessAlive(rival: PeerStream, hello: MessageOf<"hello">, arrivedAt: number): Promise<void> {
    const isAlive = await rival.probe();
    if (this.#isClosed) return;
    if (isAlive) this.#host.refuseDuplicate(this, rival);
    else this.#accept(hello, arrivedAt);
  }

  #accept(hello: MessageOf<"hello">, arrivedAt: number): void {
    this.peer.acknowledged(hello);
    this.peer.backOff.reset();
    this.#greeting = hello;
    const proto = Math.min(protocols[1], hello.proto[1]);
    this.send({ t: "welcome", proto, walls: this.#wallsSince(arrivedAt) });
    if (this.isOpen) this.#opened();
  }

  #welcome({ proto, walls }: MessageOf<"welcome">): void {
    if (this.#isWelcome) return;
    if (!speaks([proto, proto])) return this.refuse("PROTOCOL_UNKNOWN", `${protocolsText}, and not ${proto}`);
    this.#isWelcome = true;
    this.#sampleClock(this.#greetedAt, walls);
    watchDrift(this.#core, this.peer.id);
    if (this.isOpen) this.#opened();
  }

  #opened(): void {
    this.#core.refusals.connected(this.peer.id);
    this.#core.heard();
    this.#core.duplicates.accepted(this.peer.id);
    // The greeting counts only once the peer lets this controller in: before, the peer may speak of another process with this controller's id.
    if (this.#greeting) this.#core.generation.heard(this.peer.id, this.#greeting);
    this.#openedAt = this.#core.options.clock.mono();
    if (!this.#host.opened(this)) return;
    // The first ping was scheduled before the round trip was known.
    this.#pinger.restart();
    // Each side pulls for itself, also when the greeting shows nothing new: only a complete pull ends joining and catching up.
    this.#puller.pull();
    this.#host.outbox.opened(this);
    for (const entries of this.#host.soft.pages()) this.send({ t: "soft", entries });
  }

  #refused({ code, message }: MessageOf<"refuse">): void {
    this.#core.refusals.remember(this.peer.id, { code, message });
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

  #have(message: MessageOf<"have"> | MessageOf<"ping">): void {
    this.peer.acknowledged(message);
    this.#core.generation.heard(this.peer.id, message);
    if (!dominates(this.#core.commits.accepted, new Map(message.vv))) this.#puller.pull();
  }

  sendHave(): void {
    const { map, isWhole: ready } = this.#core.state;
    this.send({ t: "have", ready, vv: toWire(map.vector), ...this.#core.commits.underway() });
  }

  /** The wall clock at the arrival of a message, and now that its answer is sent. */
  #wallsSince(arrivedAt: number): readonly [arrived: number, sent: number] {
    return [arrivedAt, this.#core.options.clock.wall()];
  }

  pingSoon(): void {
    this.#pinger.hurry();
  }

  reportDuplicate(text: string): void {
    this.#duplicateReport = text;
  }

  #sendPing(n: number): void {
    if (!this.isOpen) return;
    const { map, isWhole: ready } = this.#core.state;
    const vv = toWire(map.vector);
    const { commits } = this.#core;
    const copies = this.#duplicateReport;
    this.#duplicateReport = undefined;
    this.send({ t: "ping", n, ready, vv, ...commits.underway(), ...commits.digest(), ...omitUndefined({ copies }) });
  }

  #pong({ n, walls }: MessageOf<"pong">): void {
    const sentAt = this.#pinger.answered(n);
    if (sentAt !== undefined) this.#sampleClock(sentAt, walls);
    watchDrift(this.#core, this.peer.id);
  }

  #sampleClock(sentAt: number, walls: readonly [arrived: number, sent: number]): void {
    this.peer.rtt.sample(this.#core.guard.sample(this.peer.id, sentAt, walls));
  }

  probe(): Promise<boolean> {
    return this.#pinger.probe();
  }
}
