import { Low, type Adapter } from "lowdb";
import { ifThere, readText, replaceFile } from "./file.ts";

export interface Codec<Data> {
  readonly parse: (text: string) => Data;
  readonly print: (data: Data) => string;
}

/** The file operations of a database; tests pass their own. */
export interface TextFiles {
  /** The text of a file; undefined: there is none. */
  readonly read: (path: string) => Promise<string | undefined>;
  /** Replaces a file as a whole, and flushes it. */
  readonly replace: (path: string, text: string) => Promise<void>;
}

const ownFiles: TextFiles = {
  read: (path) => ifThere(readText(path)),
  replace: (path, text) => replaceFile(path, text),
};

class FileAdapter<Data> implements Adapter<Data> {
  readonly #path: string;
  readonly #codec: Codec<Data>;
  readonly #files: TextFiles;

  constructor(path: string, codec: Codec<Data>, files: TextFiles) {
    this.#path = path;
    this.#codec = codec;
    this.#files = files;
  }

  async read(): Promise<Data | null> {
    const text = await this.#files.read(this.#path);
    return text === undefined ? null : this.#codec.parse(text);
  }

  write(data: Data): Promise<void> {
    return this.#files.replace(this.#path, this.#codec.print(data));
  }
}

/**
 * A small file (0600) as a lowdb database. `read` leaves `data` unchanged if the file is missing, and throws KcoreError FILE_UNREADABLE or
 * an error of `codec.parse`; `write` replaces the file as a whole, flushes it, and throws the disk's errors.
 */
export function durableFile<Data>(
  path: string,
  codec: Codec<Data>,
  data: Data,
  files: TextFiles = ownFiles,
): Low<Data> {
  return new Low(new FileAdapter(path, codec, files), data);
}

interface Schema<Data> {
  readonly parse: (value: unknown) => Data;
}

/** As `durableFile`, for JSON that a zod schema checks. */
export function durableJson<Data>(path: string, schema: Schema<Data>, data: Data, files?: TextFiles): Low<Data> {
  const parse = (text: string): Data => schema.parse(JSON.parse(text));
  return durableFile(path, { parse, print: (value) => `${JSON.stringify(value, undefined, 2)}\n` }, data, files);
}

/** The data of a file that `durableJson` wrote; undefined if the file is missing or damaged. For data that can be made again. */
export async function readCached<Data>(
  path: string,
  schema: Schema<Data>,
  files?: TextFiles,
): Promise<Data | undefined> {
  const db = durableJson<Data | null>(path, schema, null, files);
  await db.read().catch(() => undefined);
  return db.data ?? undefined;
}
