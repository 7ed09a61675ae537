const smallest = 4096;

/** Bytes that come in pieces of any size: each is copied a few times at most, however many come. */
export class ByteBuffer {
  #bytes = Buffer.alloc(0);
  length = 0;

  append(part: Uint8Array): void {
    const length = this.length + part.length;
    if (length > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(Math.max(smallest, length, 2 * this.#bytes.length));
      this.#bytes.copy(grown, 0, 0, this.length);
      this.#bytes = grown;
    }
    this.#bytes.set(part, this.length);
    this.length = length;
  }

  /** All of it with `part` behind it, which stays whoever's it is; nothing is kept. */
  takeWith(part: Uint8Array): Buffer {
    this.append(part);
    const taken = this.#bytes.subarray(0, this.length);
    this.#bytes = Buffer.alloc(0);
    this.length = 0;
    return taken;
  }

  /** The last `count` bytes at most. */
  last(count: number): Buffer {
    return this.#bytes.subarray(Math.max(0, this.length - count), this.length);
  }
}
