import type { Core } from "./core.ts";
import type { Dialler } from "./dialler.ts";
import type { Incarnation } from "./incarnation.ts";
import { authKeyOf } from "./members.ts";
import { protocolsText, speaks } from "./messages.ts";
import type { PeerMessage, RefusalCode } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import type { LinkEvents, PeerLink } from "./ports.ts";
import { Session } from "./session.ts";
import type { Soft } from "./soft.ts";
import type { Writer } from "./writer.ts";

interface Parts {
  readonly incarnation: Incarnation;
  readonly outbox: Outbox;
  readonly dialler: Dialler;
  readonly soft: Soft;
  readonly writer: Writer;
}

/** The connections of a replica: who may speak, which of two to the same peer counts, and what follows from news. */
export class Hub {
  readonly boot: string;
  readonly incarnation: Incarnation;
  readonly outbox: Outbox;
  readonly soft: Soft;
  readonly writer: Writer;
  readonly #core: Core;
  readonly #dialler: Dialler;
  readonly #sessions = new Set<Session>();

  constructor(core: Core, { incarnation, outbox, dialler, soft, writer }: Parts) {
    this.#core = core;
    this.boot = core.randomName();
    this.incarnation = incarnation;
    this.outbox = outbox;
    this.soft = soft;
    this.writer = writer;
    this.#dialler = dialler;
    core.onMembers = () => this.#membersChanged();
    core.every(core.tuning.pullEvery, () => {
      for (const session of this.#open()) session.puller.pull();
    });
  }

  connected(link: PeerLink): LinkEvents {
    const session = new Session(this.#core, this, link);
    this.#sessions.add(session);
    this.#dialler.connected(link.peer);
    return session;
  }

  stop(): void {
    for (const session of this.#sessions) session.close("stopping");
  }

  /** Whether a greeting is refused, and why. */
  judge(
    { peer }: Session,
    { cluster, id, origin, proto }: Extract<PeerMessage, { t: "hello" }>,
  ): { readonly code: RefusalCode; readonly message: string } | undefined {
    const { options, state, members } = this.#core;
    if (cluster !== options.cluster) return { code: "CLUSTER_DIFFERS", message: `this is cluster ${options.cluster}` };
    if (!speaks(proto)) return { code: "PROTOCOL_UNKNOWN", message: protocolsText };
    if (id === options.id) return { code: "SAME_CONTROLLER", message: `this is ${id} itself` };
    if (id !== peer.id) return { code: "NOT_REGISTERED", message: `${peer.id} calls itself ${id}` };
    if (this.#core.equivocal.has(origin))
      return {
        code: "EQUIVOCATION",
        message: `${origin} wrote two things under one number; kcore controller repair mends it`,
      };
    // A controller that joins knows nobody yet; it trusts whom its transport lets in.
    const isJoining = !state.ready && state.map.get(authKeyOf(options.id)) === undefined;
    if (!isJoining && !members.includes(id))
      return {
        code: "NOT_REGISTERED",
        message: `${id} is not a registered controller; kcore controller join registers it`,
      };
    return undefined;
  }

  /** Both sides accepted. Of two connections the one that the smaller id dialled stays. False: this one goes. */
  opened(session: Session): boolean {
    const { peer } = session;
    const other = peer.session;
    if (other && other !== session && other.isOpen) {
      // Dialled at the same moment? A peer that dials later, or was started again, has given the old one up.
      const isTwin = other.boot === session.boot && session.openedAt - other.openedAt < 2000;
      if (isTwin && this.#isPreferred(other) && !this.#isPreferred(session)) {
        session.close("another connection stands");
        return false;
      }
      peer.session = session;
      other.close("another connection took its place");
    }
    peer.session = session;
    return true;
  }

  #isPreferred({ link, peer }: Session): boolean {
    return link.initiator === this.#core.options.id < peer.id;
  }

  lost(session: Session): void {
    this.#sessions.delete(session);
    const { peer } = session;
    if (peer.session === session) {
      peer.session = undefined;
      this.#core.guard.forget(peer.id);
    }
    if (!this.#core.isStopped) this.#dialler.wanted(peer.id);
  }

  /** A connection says nothing; a new one takes its place if it can be had. */
  silent({ peer }: Session): void {
    this.#dialler.dial(peer.id);
  }

  isConnected(id: string): boolean {
    return [...this.#sessions].some(({ peer }) => peer.id === id);
  }

  /** A pull came to its end. */
  synced(session: Session): void {
    this.incarnation.progressed();
    const { state, options, members } = this.#core;
    if (state.ready || session.peer.isReady !== true || !members.includes(options.id)) return;
    // Joined: all that a controller which knows of us had, our registration included.
    this.#core.commit(
      [{ t: "meta", ready: true }],
      [],
      () => {
        options.log?.("info", "this controller has joined", { sponsor: session.peer.id });
        for (const each of this.#open()) each.tellHave();
      },
      () => undefined,
    );
  }

  #open(): readonly Session[] {
    return [...this.#core.peers.values()].flatMap(({ session }) => (session?.isOpen ? [session] : []));
  }

  open(): readonly Session[] {
    return this.#open();
  }

  #membersChanged(): void {
    const { others, members, options, state } = this.#core;
    const isOut = state.ready && !members.includes(options.id);
    for (const session of this.#sessions) {
      if (!session.isOpen || isOut || others.includes(session.peer.id)) continue;
      // One that leaves waits to hear that its leaving has arrived.
      session.tellHave();
      session.close("removed");
    }
    for (const id of others) this.#dialler.wanted(id);
  }
}
