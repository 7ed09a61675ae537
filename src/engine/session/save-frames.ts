import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, type ZlibOptions } from "node:zlib";
import { cleanText } from "#engine/events/clean.ts";
import type { Frame } from "#engine/program/frames.ts";
import type {
  SavedDevice,
  SaveOccasion,
  KeptTable,
  TableSave,
  TableStore,
} from "#engine/partition-backups/saved-tables.ts";

const unpack = promisify<Buffer, ZlibOptions, Buffer>(gunzip);
/** Bytes of a piece at most (`a_part` in step/fragments/areas.ts). */
const maxPiece = 4 << 20;
/** Bytes of a text at most. */
const maxText = 256 << 10;
/** Packed bytes of one device at most. */
const maxPacked = 1 << 30;
/** Ids of one device at most, and texts. */
const maxEntries = 256;

/** The result for one name. */
export type SaveResult =
  | (KeptTable & { readonly device: SavedDevice })
  /** `unsaved`: the reason. `isAbsent`: the node has no disk of this name. */
  | { readonly unsaved: string; readonly isAbsent?: boolean };

interface OpenSave {
  readonly number: number;
  readonly size: number;
  readonly save: TableSave;
  readonly ids: Set<string>;
  readonly pieces: SavedDevice["pieces"][number][];
  readonly texts: Map<string, string>;
  bytes: number;
}

/** A content that the node has announced, and the part that has arrived. */
interface AnnouncedContent {
  readonly gzip: Uint8Array[];
  /** Bytes that have not arrived. */
  missing: number;
  readonly take: (gzip: Buffer) => Promise<void>;
}

/** The frames of a save break the protocol or a limit. */
class BadFrames extends Error {}

/**
 * Reads the frames of save.sh and keeps complete saves in the store. A save is complete if every byte has arrived, and each piece has the
 * SHA-256 that the node computed.
 */
export class SaveReader {
  readonly results = new Map<string, SaveResult>();
  readonly #names: readonly string[];
  readonly #store: TableStore;
  readonly #occasion: (name: string) => SaveOccasion;
  #open: OpenSave | undefined;
  #expected: AnnouncedContent | undefined;
  /** The node has sent everything. */
  isWhole = false;

  constructor(names: readonly string[], store: TableStore, occasion: (name: string) => SaveOccasion) {
    this.#names = names;
    this.#store = store;
    this.#occasion = occasion;
  }

  /** Takes the next frame, and keeps its bytes; frames of other types are ignored. */
  async take(frame: Frame): Promise<void> {
    try {
      await this.#take(frame);
    } catch (error) {
      await this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** No further frame comes: an open save is dropped. */
  async end(why: string): Promise<void> {
    if (this.#open) await this.#fail(why);
    for (const name of this.#names) if (!this.results.has(name)) this.results.set(name, { unsaved: why });
  }

  async #take({ type, rest, bytes }: Frame): Promise<void> {
    const [first = "", ...words] = rest.split(" ");
    if (type === "out") return this.#takeBytes(bytes ?? new Uint8Array());
    if (type === "all") {
      this.isWhole = true;
      return;
    }
    const number = Number(first);
    const name = this.#names[number];
    if (name === undefined || this.results.has(name)) return;
    if (this.#expected && ["save", "text", "piece", "saved"].includes(type))
      throw new BadFrames("the node said less than it announced");
    if (type === "save") return this.#begin(number, words);
    if (type === "absent")
      return void this.results.set(name, { unsaved: "the node has nothing of this name", isAbsent: true });
    if (type === "unsaved") return this.#fail(cleanText(words.join(" ")).slice(0, 1024), number);
    const open = this.#open;
    if (open?.number !== number) return;
    switch (type) {
      case "id":
        if (open.ids.size < maxEntries) open.ids.add(cleanText(words.join(" ")).slice(0, 256));
        return;
      case "text":
        return this.#announceText(open, words);
      case "piece":
        return this.#announcePiece(open, words);
      case "saved":
        return this.#keep(open, name, words);
      default:
    }
  }

  async #begin(number: number, [size = ""]: readonly string[]): Promise<void> {
    await this.#open?.save.drop();
    this.#open = undefined;
    let save: TableSave;
    try {
      save = await this.#store.open();
    } catch (error) {
      return this.#fail(error instanceof Error ? error.message : String(error), number);
    }
    this.#open = { number, size: countOf(size), save, ids: new Set(), pieces: [], texts: new Map(), bytes: 0 };
  }

  #announceText(open: OpenSave, [bytes = "", ...what]: readonly string[]): void {
    if (open.texts.size >= maxEntries) throw new BadFrames("the node said more than a disk has");
    this.#expect(open, countOf(bytes), async (gzip) => {
      const text = await unpack(gzip, { maxOutputLength: maxText });
      open.texts.set(cleanText(what.join(" ")).slice(0, 128), cleanText(text.toString("utf8")));
    });
  }

  #announcePiece(open: OpenSave, [offset = "", length = "", sha256 = "", bytes = ""]: readonly string[]): void {
    const piece = { offset: countOf(offset), length: countOf(length), sha256 };
    const before = open.pieces.at(-1);
    const isNext = piece.offset >= (before ? before.offset + before.length : 0);
    const isInside = piece.length > 0 && piece.length <= maxPiece && piece.offset + piece.length <= open.size;
    if (!isNext || !isInside || piece.offset % 512 !== 0 || piece.length % 512 !== 0)
      throw new BadFrames("the node told of pieces that no disk has");
    this.#expect(open, countOf(bytes), async (gzip) => {
      const content = await unpack(gzip, { maxOutputLength: maxPiece });
      if (content.length !== piece.length || createHash("sha256").update(content).digest("hex") !== sha256)
        throw new BadFrames(
          `the received part of the ${piece.length} bytes at ${piece.offset} differs from what the node read`,
        );
      await open.save.add(gzip);
      open.pieces.push(piece);
    });
  }

  #expect(open: OpenSave, missing: number, take: AnnouncedContent["take"]): void {
    open.bytes += missing;
    if (missing === 0 || missing > 2 * maxPiece || open.bytes > maxPacked)
      throw new BadFrames("the node said more than a disk has");
    this.#expected = { gzip: [], missing, take };
  }

  async #takeBytes(bytes: Uint8Array): Promise<void> {
    const expected = this.#expected;
    if (!expected) return;
    expected.gzip.push(bytes);
    expected.missing -= bytes.length;
    if (expected.missing > 0) return;
    this.#expected = undefined;
    if (expected.missing < 0) throw new BadFrames("the node said more than it announced");
    await expected.take(Buffer.concat(expected.gzip));
  }

  async #keep({ number, save, size, ids, pieces, texts }: OpenSave, name: string, [count = ""]: readonly string[]) {
    if (pieces.length === 0 || pieces.length !== countOf(count)) throw new BadFrames("pieces of it did not arrive");
    const device: SavedDevice = { name, size, ids: [...ids], pieces, texts: Object.fromEntries(texts) };
    const kept = await save.keep(device, this.#occasion(name));
    this.#open = undefined;
    this.results.set(this.#names[number] as string, { ...kept, device });
  }

  async #fail(why: string, number = this.#open?.number): Promise<void> {
    const name = number === undefined ? undefined : this.#names[number];
    await this.#open?.save.drop().catch(() => undefined);
    this.#open = this.#expected = undefined;
    if (name !== undefined) this.results.set(name, { unsaved: why });
  }
}

/** A number as sh writes it; anything else is -1, which every check refuses. */
function countOf(word: string): number {
  return /^\d{1,15}$/.test(word) ? Number(word) : -1;
}
