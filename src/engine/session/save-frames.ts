import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { gunzip, type ZlibOptions } from "node:zlib";
import { cleanText } from "#engine/events/clean.ts";
import type { Frame } from "#engine/program/frames.ts";
import type {
  SavedDevice,
  SaveOccasion,
  KeptTable,
  TablePiece,
  TableSave,
  TableStore,
} from "#engine/tables/table-store.ts";

const unpack = promisify<Buffer, ZlibOptions, Buffer>(gunzip);
/** Bytes that a part (`a_part` in step/fragments/areas.ts) and a text have at most. */
const longestPart = 4 << 20;
const longestText = 256 << 10;
/** What of one device is kept at most, packed, and how many names and texts it has. */
const mostBytes = 1 << 30;
const mostWords = 256;

/** What came of one name. */
export type SaveResult =
  | (KeptTable & { readonly device: SavedDevice })
  /** Why; `isAbsent`: the node has nothing of this name. */
  | { readonly unsaved: string; readonly isAbsent?: boolean };

interface Open {
  readonly number: number;
  readonly size: number;
  readonly save: TableSave;
  readonly ids: Set<string>;
  readonly pieces: TablePiece[];
  readonly texts: Map<string, string>;
  bytes: number;
}

/** What is announced and still to come. */
interface Expected {
  readonly gzip: Buffer[];
  left: number;
  readonly take: (gzip: Buffer) => Promise<void>;
}

/** A save that is not as it has to be. */
class Broken extends Error {}

/**
 * Reads what save.sh says, one frame after the other, and gives the store what is whole: every byte is there, the SHA-256 of each piece is
 * that which the node read. A name of which anything is missing is unsaved.
 */
export class SaveReader {
  readonly results = new Map<string, SaveResult>();
  readonly #names: readonly string[];
  readonly #store: TableStore;
  readonly #occasion: (name: string) => SaveOccasion;
  #open: Open | undefined;
  #expected: Expected | undefined;
  /** The node said that this was all. */
  isWhole = false;

  constructor(names: readonly string[], store: TableStore, occasion: (name: string) => SaveOccasion) {
    this.#names = names;
    this.#store = store;
    this.#occasion = occasion;
  }

  /** Frames of others are passed over. */
  async take(frame: Frame): Promise<void> {
    try {
      await this.#take(frame);
    } catch (error) {
      await this.#fail(error instanceof Error ? error.message : String(error));
    }
  }

  /** Nothing more comes: what is open is dropped. */
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
      throw new Broken("the node said less than it announced");
    if (type === "save") return this.#begin(number, words);
    if (type === "absent")
      return void this.results.set(name, { unsaved: "the node has nothing of this name", isAbsent: true });
    if (type === "unsaved") return this.#fail(cleanText(words.join(" ")).slice(0, 1024), number);
    const open = this.#open;
    if (open?.number !== number) return;
    switch (type) {
      case "id":
        if (open.ids.size < mostWords) open.ids.add(cleanText(words.join(" ")).slice(0, 256));
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

  #announceText(open: Open, [bytes = "", ...what]: readonly string[]): void {
    if (open.texts.size >= mostWords) throw new Broken("the node said more than a disk has");
    this.#expect(open, countOf(bytes), async (gzip) => {
      const text = await unpack(gzip, { maxOutputLength: longestText });
      open.texts.set(cleanText(what.join(" ")).slice(0, 128), cleanText(text.toString("utf8")));
    });
  }

  #announcePiece(open: Open, [offset = "", length = "", sha256 = "", bytes = ""]: readonly string[]): void {
    const piece = { offset: countOf(offset), length: countOf(length), sha256 };
    const before = open.pieces.at(-1);
    const isNext = piece.offset >= (before ? before.offset + before.length : 0);
    const isInside = piece.length > 0 && piece.length <= longestPart && piece.offset + piece.length <= open.size;
    if (!isNext || !isInside || piece.offset % 512 !== 0 || piece.length % 512 !== 0)
      throw new Broken("the node told of pieces that no disk has");
    this.#expect(open, countOf(bytes), async (gzip) => {
      const content = await unpack(gzip, { maxOutputLength: longestPart });
      if (content.length !== piece.length || createHash("sha256").update(content).digest("hex") !== sha256)
        throw new Broken(`what came of the ${piece.length} bytes at ${piece.offset} is not what the node read`);
      await open.save.add(gzip);
      open.pieces.push(piece);
    });
  }

  #expect(open: Open, left: number, take: Expected["take"]): void {
    open.bytes += left;
    if (left === 0 || left > 2 * longestPart || open.bytes > mostBytes)
      throw new Broken("the node said more than a disk has");
    this.#expected = { gzip: [], left, take };
  }

  async #takeBytes(bytes: Uint8Array): Promise<void> {
    const expected = this.#expected;
    if (!expected) return;
    // A view into what the link reads next.
    expected.gzip.push(Buffer.from(bytes));
    expected.left -= bytes.length;
    if (expected.left > 0) return;
    this.#expected = undefined;
    if (expected.left < 0) throw new Broken("the node said more than it announced");
    await expected.take(Buffer.concat(expected.gzip));
  }

  async #keep({ number, save, size, ids, pieces, texts }: Open, name: string, [count = ""]: readonly string[]) {
    if (pieces.length === 0 || pieces.length !== countOf(count)) throw new Broken("pieces of it did not arrive");
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

/** A number as sh writes it; what is none is -1, which nothing takes. */
function countOf(word: string): number {
  return /^\d{1,15}$/.test(word) ? Number(word) : -1;
}
