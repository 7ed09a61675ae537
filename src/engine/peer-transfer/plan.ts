/** Nodes at most that read from one source at a time. */
const maxReaders = 2;
/** After so many failed readers a node is no source any more. */
const maxStrikes = 2;
/** Sources of one content at most: each source keeps the content and its connection to the end of the run. */
const maxSources = 8;

/** The source from which a node gets a content: the bastion, or a node that has it. */
export interface TransferOrder {
  readonly node: string;
  /** Absent: the bastion. */
  readonly from?: string;
}

interface Source {
  readers: number;
  strikes: number;
}

/**
 * The nodes that have one content, get it, or wait for it. The plan sends nothing itself: each method returns the orders to give now. While
 * no node is a source, the bastion sends to one waiting node at a time. It also sends to each node whose fetch from a source failed.
 */
export class TransferPlan {
  readonly #sources = new Map<string, Source>();
  /** The receiving nodes, with the source of each. */
  readonly #travelling = new Map<string, string | undefined>();
  readonly #waiting: string[] = [];

  get wantsSource(): boolean {
    return this.#sources.size < maxSources;
  }

  /** Whether other nodes can get the content from this node. */
  isSource(node: string): boolean {
    return this.#sources.has(node);
  }

  /** Whether the node was ordered to get the content, and has neither got it nor left. */
  isTravelling(node: string): boolean {
    return this.#travelling.has(node);
  }

  /** A node that has or gets the content, and for which the given node waits; undefined: the given node does not wait. */
  awaitedBy(node: string): string | undefined {
    if (!this.#waiting.includes(node)) return undefined;
    return [...this.#sources.keys()][0] ?? [...this.#travelling.keys()][0];
  }

  /** The node needs the content; a source that asks for it has lost it. */
  request(node: string): readonly TransferOrder[] {
    this.#sources.delete(node);
    this.#free(node);
    if (!this.#waiting.includes(node)) this.#waiting.push(node);
    return this.#assign();
  }

  /** The node does not need the content, or not now. */
  leave(node: string): readonly TransferOrder[] {
    const at = this.#waiting.indexOf(node);
    if (at >= 0) this.#waiting.splice(at, 1);
    this.#free(node);
    return this.#assign();
  }

  /** The node has the content. `serves`: it becomes a source. */
  arrived(node: string, { serves }: { readonly serves: boolean }): readonly TransferOrder[] {
    if (!this.#travelling.has(node)) return [];
    this.#free(node);
    if (serves) this.#sources.set(node, { readers: 0, strikes: 0 });
    return this.#assign();
  }

  /** The node got nothing from its source, so the bastion sends to it now. `isBad`: the source would serve no other node either. */
  failed(node: string, { isBad }: { readonly isBad: boolean }): readonly TransferOrder[] {
    if (!this.#travelling.has(node)) return [];
    const from = this.#travelling.get(node);
    const source = this.#sourceOf(node);
    this.#free(node);
    this.#travelling.set(node, undefined);
    if (from !== undefined && source && (isBad || ++source.strikes >= maxStrikes)) this.#sources.delete(from);
    return this.#assign();
  }

  removeSource(source: string): readonly TransferOrder[] {
    this.#sources.delete(source);
    return this.#assign();
  }

  #sourceOf(node: string): Source | undefined {
    const from = this.#travelling.get(node);
    return from === undefined ? undefined : this.#sources.get(from);
  }

  #free(node: string): void {
    const source = this.#sourceOf(node);
    if (source) source.readers -= 1;
    this.#travelling.delete(node);
  }

  #assign(): readonly TransferOrder[] {
    const orders: TransferOrder[] = [];
    for (let node = this.#waiting[0]; node !== undefined; node = this.#waiting[0]) {
      const [best] = [...this.#sources].toSorted(([, a], [, b]) => a.readers - b.readers);
      if (best && best[1].readers < maxReaders) {
        best[1].readers += 1;
        this.#travelling.set(node, best[0]);
        orders.push({ node, from: best[0] });
      } else if (best || this.#travelling.size > 0) break;
      else {
        this.#travelling.set(node, undefined);
        orders.push({ node });
      }
      this.#waiting.shift();
    }
    return orders;
  }
}
