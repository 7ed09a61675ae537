import { createCipheriv, createDecipheriv, hkdfSync } from "node:crypto";
import { deflateRawSync, inflateRawSync } from "node:zlib";

/** A message that is forged, changed, sent again, or out of its order; or one before it was lost. */
export class BadMessage extends Error {}

const TAG_BYTES = 16;
/** Most bytes of an opened message: less than the string limit, more than a blob of a table. */
const MOST_BYTES = 64 * 2 ** 20;

/**
 * One direction of the messages between a coordinator and a worker about a job (AES-256-GCM, a key for each context by HKDF). Each end
 * counts: a message that was sent again, or comes from another job or direction, does not open. Behind a lost one none opens.
 */
export class Channel {
  readonly #key: Buffer;
  #count = 0;

  /** `context`: names run, job, worker and direction; no two channels of a run key have the same. */
  constructor(runKey: Buffer, context: string) {
    this.#key = Buffer.from(hkdfSync("sha256", runKey, Buffer.alloc(0), context, 32));
  }

  seal(message: unknown): Buffer {
    const cipher = createCipheriv("aes-256-gcm", this.#key, this.#nextNonce());
    const text = deflateRawSync(JSON.stringify(message), { level: 1 });
    return Buffer.concat([cipher.update(text), cipher.final(), cipher.getAuthTag()]);
  }

  /** Opens the next message. @throws BadMessage */
  open(bytes: Buffer): unknown {
    const decipher = createDecipheriv("aes-256-gcm", this.#key, this.#nextNonce());
    const end = bytes.length - TAG_BYTES;
    if (end < 0) throw new BadMessage("a message is cut off");
    decipher.setAuthTag(bytes.subarray(end));
    let text: Buffer;
    try {
      text = Buffer.concat([decipher.update(bytes.subarray(0, end)), decipher.final()]);
    } catch (cause) {
      throw new BadMessage(`message ${this.#count} of a job does not open`, { cause });
    }
    return JSON.parse(inflateRawSync(text, { maxOutputLength: MOST_BYTES }).toString()) as unknown;
  }

  /** The message's number. No number of a channel is used twice, as GCM demands. */
  #nextNonce(): Buffer {
    const nonce = Buffer.alloc(12);
    nonce.writeBigUInt64BE(BigInt(++this.#count), 4);
    return nonce;
  }
}
