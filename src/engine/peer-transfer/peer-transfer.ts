import { cleanText } from "#engine/events/clean.ts";
import type { Emit } from "#engine/events/event.ts";
import type { PeerBlobs, BlobPeer } from "#engine/session/peer-blobs.ts";
import type { Blob } from "#engine/step/blob.ts";
import type { Host } from "#engine/transport/host.ts";
import { TransferMember, type TransferContent, wrongHash } from "./member.ts";
import { type TransferOrder, TransferPlan } from "./plan.ts";

/** Minimum bytes of a content that nodes fetch from one another: the bastion sends a smaller one faster than a node logs in to another. */
const minSize = 1 << 20;
/** Milliseconds between two reports of a content's progress. */
const reportEvery = 900;
/** After so many failed fetches of a node from other nodes, the bastion sends everything to the node itself. */
const maxStrikes = 2;
/** Characters of a node's message that a warning shows. */
const maxReason = 300;
/** Paths and addresses that need no quoting for sh, sshd and ssh. */
const plain = /^[\w./:@%+-]+$/;

interface SharedContent {
  readonly label: string;
  readonly plan: TransferPlan;
  /** Resolvers of the nodes that wait for an order. */
  readonly waiting: Map<string, (order: TransferOrder) => void>;
}

/** One content, for one node. */
interface Delivery {
  readonly peer: BlobPeer;
  readonly content: SharedContent;
  readonly named: TransferContent;
}

/** Lets the nodes of one run fetch large contents from one another (ADR 0312). After a failure it warns, and the bastion sends. */
export class PeerTransfer implements PeerBlobs {
  readonly #emit: Emit;
  readonly #patience: number | undefined;
  readonly #contents = new Map<string, SharedContent>();
  readonly #members = new Map<string, TransferMember>();
  /** The number of failed fetches of each node from others. */
  readonly #strikes = new Map<string, number>();
  readonly #warned = new Set<string>();
  /** Connections whose sessions have ended, which the transfer has to close. */
  readonly #inherited = new Set<Host>();
  /** Settles for each member that is being closed. */
  readonly #ending = new Set<Promise<void>>();

  /** `patience`: milliseconds for which a node may make no progress with its order; absent: half a minute. */
  constructor({ emit, patience }: { readonly emit: Emit; readonly patience?: number }) {
    this.#emit = emit;
    this.#patience = patience;
  }

  takes({ host, node }: BlobPeer, { sensitive, form, size }: Blob): boolean {
    return (
      host.hostKey !== undefined &&
      (this.#strikes.get(node) ?? 0) < maxStrikes &&
      !sensitive &&
      form === "bytes" &&
      size >= minSize
    );
  }

  async bring(peer: BlobPeer, name: string, blob: Blob): Promise<"there" | "send" | "left"> {
    const { node, emit } = peer;
    const delivery = this.#deliveryOf(peer, name, blob);
    const { content } = delivery;
    const { promise, resolve } = Promise.withResolvers<TransferOrder>();
    content.waiting.set(node, resolve);
    this.#dispatch(content, content.plan.request(node));
    const awaited = content.plan.awaitedBy(node);
    if (awaited !== undefined) emit({ type: "node.waiting", node, reason: `for ${content.label} from ${awaited}` });
    const { from } = await promise;
    const source = from === undefined ? undefined : this.#members.get(from);
    if (from !== undefined && !source) this.#dispatch(content, content.plan.failed(node, { isBad: true }));
    if (source && (await this.#fetch(delivery, source))) return "there";
    return content.plan.isTravelling(node) ? "send" : "left";
  }

  async keep(peer: BlobPeer, name: string, blob: Blob): Promise<boolean> {
    const delivery = this.#deliveryOf(peer, name, blob);
    const { content, named } = delivery;
    if (!content.plan.isTravelling(peer.node)) return false;
    if (!canServe(peer) || !content.plan.wantsSource) {
      this.#arrived(delivery, false);
      return false;
    }
    const why = await this.#memberOf(peer).keep(named);
    if (why !== undefined && content.plan.isTravelling(peer.node))
      this.#warn(peer, `other nodes cannot get ${content.label} from it`, why);
    this.#arrived(delivery, why === undefined);
    return why === undefined;
  }

  leave(node: string): void {
    for (const content of this.#contents.values()) {
      content.waiting.get(node)?.({ node });
      content.waiting.delete(node);
      this.#dispatch(content, content.plan.leave(node));
    }
  }

  takeOver(host: Host): boolean {
    const isRead = [...this.#members].some(
      ([node, { peer, isOver }]) =>
        peer.host === host && !isOver && [...this.#contents.values()].some(({ plan }) => plan.isSource(node)),
    );
    if (isRead) this.#inherited.add(host);
    return isRead;
  }

  /** Ends the transfer: resolves when the nodes have removed its files, or the time for that is over. */
  async close(): Promise<void> {
    for (const member of this.#members.values()) this.#retire(member);
    await Promise.all(this.#ending);
  }

  #deliveryOf(peer: BlobPeer, name: string, { sha256, size, label = "contents" }: Blob): Delivery {
    let content = this.#contents.get(sha256);
    if (!content) this.#contents.set(sha256, (content = { label, plan: new TransferPlan(), waiting: new Map() }));
    return { peer, content, named: { name, size, sha256 } };
  }

  /** The node's member over this connection; a member of an earlier connection is closed. */
  #memberOf(peer: BlobPeer): TransferMember {
    const { node } = peer;
    const known = this.#members.get(node);
    if (known?.peer.host === peer.host && !known.isOver) return known;
    if (known) this.#retire(known);
    const member = new TransferMember(peer, this.#patience);
    this.#members.set(node, member);
    void member.closed.then(() => {
      if (this.#members.get(node) === member) this.#forget(node);
      return this.#letGo(peer.host);
    });
    return member;
  }

  #forget(node: string): void {
    this.#members.delete(node);
    for (const content of this.#contents.values()) this.#dispatch(content, content.plan.removeSource(node));
  }

  #retire(member: TransferMember): void {
    const { node, host } = member.peer;
    this.#forget(node);
    const end = member.close().then(() => this.#letGo(host));
    this.#ending.add(end);
    void end.then(() => this.#ending.delete(end));
  }

  /** Closes the connection only if the session has left it to the transfer. */
  async #letGo(host: Host): Promise<void> {
    if (this.#inherited.delete(host)) await host.close();
  }

  #dispatch(content: SharedContent, orders: readonly TransferOrder[]): void {
    for (const order of orders) {
      content.waiting.get(order.node)?.(order);
      content.waiting.delete(order.node);
    }
  }

  #arrived({ peer, content, named }: Delivery, isKept: boolean): void {
    const member = this.#members.get(peer.node);
    const serves = isKept && canServe(peer) && content.plan.wantsSource && member?.isOver === false;
    if (isKept && !serves) member?.drop(named);
    this.#dispatch(content, content.plan.arrived(peer.node, { serves }));
  }

  /** True: the content is in the run's blobs on the node. False: the bastion has to send it, or the node no longer waits. */
  async #fetch(delivery: Delivery, source: TransferMember): Promise<boolean> {
    const { peer, content, named } = delivery;
    const { node, emit } = peer;
    const from = source.peer.node;
    const began = Date.now();
    const { makeKeyPair } = await import("#engine/transport/key-pair.ts");
    const key = makeKeyPair("kcore-feed");
    const admitFailure = await source.admit(named, key);
    const isWanted = (): boolean => content.plan.isTravelling(node);
    const report = progressReporter(delivery, from);
    const progress = (bytes: number): void => (isWanted() ? report(bytes) : undefined);
    const why =
      admitFailure ?? (isWanted() ? await this.#memberOf(peer).fetch(named, source, key, progress) : "it left");
    source.dismiss(key);
    if (!isWanted()) return false;
    if (why === undefined) {
      emit({ type: "node.sent", node, name: content.label, bytes: named.size, duration: Date.now() - began, from });
      this.#arrived(delivery, true);
      return true;
    }
    this.#warn(peer, `the bastion sends it ${content.label}, which it could not get from ${from}`, why);
    // A shut port holds for every reader; another failure may be this reader's fault.
    const isShut = admitFailure !== undefined || /Permission denied/.test(why);
    if (!isShut) this.#strikes.set(node, (this.#strikes.get(node) ?? 0) + 1);
    this.#dispatch(content, content.plan.failed(node, { isBad: isShut || why === wrongHash }));
    return false;
  }

  /** Warns once for each node and reason. */
  #warn({ node }: BlobPeer, what: string, why: string): void {
    const text = `${what}: ${why.slice(0, maxReason)}`;
    if (this.#warned.has(`${node} ${text}`)) return;
    this.#warned.add(`${node} ${text}`);
    this.#emit({ type: "warning", node, text: cleanText(text).trim() });
  }
}

/** Whether other nodes can read contents there: only a direct login as root reads root's files. */
function canServe({ run, endpoint }: BlobPeer): boolean {
  return run.login === "root" && [run.stateDir, endpoint.address].every((word) => plain.test(word));
}

/** Emits a delivery's progress, about once a second. */
function progressReporter({ peer, content, named }: Delivery, from: string): (bytes: number) => void {
  const { node, emit } = peer;
  let last = { sent: 0, at: Date.now() };
  return (sent) => {
    const at = Date.now();
    if (at - last.at < reportEvery || sent <= last.sent) return;
    const rate = Math.round(((sent - last.sent) * 1_000) / (at - last.at));
    last = { sent, at };
    emit({ type: "node.sending", node, name: content.label, sent, total: named.size, rate, from });
  };
}
