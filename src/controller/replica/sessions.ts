// “Members only” (docs/replication.md): lets registered controllers in, refuses all others, and keeps one connection to each.
import { endCatchUp } from "./catch-up.ts";
import { inBackground } from "./commit-queue.ts";
import { describeDuplicate } from "./duplicate-identity.ts";
import type { Core } from "./replica-core.ts";
import type { Dialler } from "./dialler.ts";
import { authKeyOf, concernsMembers } from "./registered-controllers.ts";
import { protocolsText, speaks, type GreetingRefusal, type MessageOf } from "./messages.ts";
import type { Outbox } from "./outbox.ts";
import type { PeerStream } from "./peer.ts";
import type { LinkEvents, PeerLink } from "./replica-ports.ts";
import { PeerSession } from "./peer-session.ts";
import type { SessionHost } from "./session-host.ts";
import type { SoftState } from "./soft-state.ts";
import type { Writer } from "./writer.ts";

/** Milliseconds between two checks whether another process still answers at this controller's own address. */
const checkAgainMs = 3_000;

interface SessionParts {
  readonly outbox: Outbox;
  readonly dialler: Dialler;
  readonly soft: SoftState;
  readonly writer: Writer;
}

/** The connections of a replica: refuses peers, chooses between two connections to one peer, and announces news to peers. */
export class Sessions implements SessionHost {
  readonly processId: string;
  readonly outbox: Outbox;
  readonly soft: SoftState;
  readonly writer: Writer;
  readonly #core: Core;
  readonly #dialler: Dialler;
  readonly #sessions = new Set<PeerStream>();

  constructor(core: Core, { outbox, dialler, soft, writer }: SessionParts) {
    this.#core = core;
    this.processId = core.randomName();
    this.outbox = outbox;
    this.soft = soft;
    this.writer = writer;
    this.#dialler = dialler;
    core.commits.watch((keys) => {
      if (concernsMembers(keys)) this.#membersChanged();
      for (const stream of this.openStreams()) stream.pingSoon();
    });
    core.every(core.tuning.pullEvery, () => {
      for (const stream of this.openStreams()) stream.pull();
    });
  }

  connected(link: PeerLink): LinkEvents {
    const session = new PeerSession(this.#core, this, link);
    this.#sessions.add(session);
    this.#dialler.connected(link.peer);
    return session;
  }

  stop(): void {
    for (const stream of this.#sessions) stream.close("stopping");
  }

  refusalFor(
    stream: PeerStream,
    { cluster, id, origin, boot, proto }: MessageOf<"hello">,
  ): GreetingRefusal | undefined {
    const { options, state, members } = this.#core;
    const { peer } = stream;
    if (cluster !== options.cluster) return { code: "CLUSTER_DIFFERS", message: `this is cluster ${options.cluster}` };
    if (!speaks(proto)) return { code: "PROTOCOL_UNKNOWN", message: protocolsText };
    if (id === options.id) return this.#refuseItself(stream, boot);
    if (id !== peer.id) return { code: "NOT_REGISTERED", message: `${peer.id} calls itself ${id}` };
    if (this.#core.isEquivocal(origin))
      return {
        code: "EQUIVOCATION",
        message: `${origin} wrote two things under one number; kcore controller repair mends it`,
      };
    // A joining controller knows no member yet; it trusts the peers that the transport lets in.
    const isJoining = !state.ready && state.map.get(authKeyOf(options.id)) === undefined;
    if (!isJoining && !members.includes(id))
      return {
        code: "NOT_REGISTERED",
        message: `${id} is not a registered controller; kcore controller join registers it`,
      };
    return undefined;
  }

  /** Refuses a greeting with this controller's own id. A controller dials its own address at intervals, and finds itself or a duplicate. */
  #refuseItself({ isDialled, process: other }: PeerStream, boot: string): GreetingRefusal {
    const { options, duplicates } = this.#core;
    const { id, at = "an address that it was not told" } = options;
    duplicates.answeredAtAddress(boot === this.processId || !isDialled);
    if (boot === this.processId) duplicates.accepted(id);
    if (boot === this.processId) return { code: "SAME_CONTROLLER", message: `this is ${id} itself` };
    const text = describeDuplicate(id, at, other.address);
    if (isDialled) {
      duplicates.refused(id, text);
      this.#core.after(checkAgainMs, () => this.#dialler.dialItself());
    } else duplicates.noteSighting(id, text, "itself");
    return { code: isDialled ? "SAME_CONTROLLER" : "TWO_COPIES", message: text };
  }

  duplicateOf(stream: PeerStream): PeerStream | undefined {
    const other = stream.peer.stream;
    return other && other !== stream && other.isOpen && other.process.id !== stream.process.id ? other : undefined;
  }

  refuseDuplicate(stream: PeerStream, rival: PeerStream): void {
    const { id } = stream.peer;
    const text = describeDuplicate(id, rival.process.address, stream.process.address);
    this.#core.duplicates.noteSighting(id, text);
    rival.reportDuplicate(text);
    stream.refuse("TWO_COPIES", text);
  }

  /** Chooses between two open connections to one peer. False: the present one stays, and `stream` is closed. */
  opened(stream: PeerStream): boolean {
    const { peer } = stream;
    const other = peer.stream;
    if (other && other !== stream && other.isOpen) {
      // Of two connections of one moment the one that the smaller id dialled stays. A peer that dials later, or restarted, has given the old connection up.
      const isSimultaneous = other.process.id === stream.process.id && stream.openedAt - other.openedAt < 2000;
      if (isSimultaneous && this.#isPreferred(other) && !this.#isPreferred(stream)) {
        stream.close("another connection stands");
        return false;
      }
      peer.choose(stream);
      other.close("another connection took its place");
    }
    peer.choose(stream);
    return true;
  }

  #isPreferred({ isDialled, peer }: PeerStream): boolean {
    return isDialled === this.#core.options.id < peer.id;
  }

  lost(stream: PeerStream): void {
    this.#sessions.delete(stream);
    const { peer } = stream;
    if (peer.lost(stream)) this.#core.guard.forget(peer.id);
    if (!this.#core.isStopped) this.#dialler.dialLater(peer.id);
  }

  /** Dials a silent peer; a new connection replaces the silent one. */
  silent({ peer }: PeerStream): void {
    this.#dialler.dial(peer.id);
  }

  isConnected(id: string): boolean {
    return [...this.#sessions].some(({ peer }) => peer.id === id);
  }

  synced({ peer }: PeerStream): void {
    const { generation, state, options, members } = this.#core;
    generation.progressed();
    this.#core.endAsking();
    if (state.isBehind && peer.isReady !== undefined && this.#core.isSource(peer)) inBackground(this.#endCatchUp());
    // The joining is complete: this state came from a ready controller, and includes this controller's registration.
    if (!state.ready && peer.isReady === true && members.includes(options.id)) inBackground(this.#endJoining(peer.id));
  }

  async #endCatchUp(): Promise<void> {
    await endCatchUp(this.#core);
    this.#sendHaveToAll();
  }

  async #endJoining(sponsor: string): Promise<void> {
    await this.#core.commits.commit([{ t: "meta", ready: true }]);
    this.#core.options.log?.("info", "this controller has joined", { sponsor });
    this.#sendHaveToAll();
  }

  #sendHaveToAll(): void {
    for (const stream of this.openStreams()) stream.sendHave();
  }

  /** The chosen connection to each peer that is connected. */
  openStreams(): readonly PeerStream[] {
    return [...this.#core.peers.values()].flatMap(({ stream }) => (stream?.isOpen ? [stream] : []));
  }

  #membersChanged(): void {
    const { others, members, options, state } = this.#core;
    const isRemoved = state.ready && !members.includes(options.id);
    if (state.ready) this.soft.keepOnly(members);
    for (const stream of this.#sessions) {
      if (!stream.isOpen || isRemoved || others.includes(stream.peer.id)) continue;
      // A leaving controller waits for the acknowledgement of its removal.
      stream.sendHave();
      stream.close("removed");
    }
    for (const id of others) this.#dialler.dialLater(id);
  }
}
