import { Low, type Adapter } from "lowdb";
import { ifThere, readText, replaceFile } from "./file.ts";

/** Parses and prints the data of a file. */
export interface Codec<Data> {
  readonly parse: (text: string) => Data;
  readonly print: (data: Data) => string;
}

class FileAdapter<Data> implements Adapter<Data> {
  readonly #path: string;
  readonly #codec: Codec<Data>;

  constructor(path: string, codec: Codec<Data>) {
    this.#path = path;
    this.#codec = codec;
  }

  async read(): Promise<Data | null> {
    const text = await ifThere(readText(this.#path));
    return text === undefined ? null : this.#codec.parse(text);
  }

  write(data: Data): Promise<void> {
    return replaceFile(this.#path, this.#codec.print(data));
  }
}

/**
 * A small file (0600) as a lowdb database. `read` leaves `data` as given if the file is missing; `write` replaces the file as a whole
 * and flushes it. @throws KcoreError FILE_UNREADABLE; on `read` also the errors of `codec.parse`
 */
export function durableFile<Data>(path: string, codec: Codec<Data>, data: Data): Low<Data> {
  return new Low(new FileAdapter(path, codec), data);
}

/** As `durableFile`, for JSON that a zod schema checks. */
export function durableJson<Data>(
  path: string,
  schema: { readonly parse: (value: unknown) => Data },
  data: Data,
): Low<Data> {
  const parse = (text: string): Data => schema.parse(JSON.parse(text));
  return durableFile(path, { parse, print: (value) => `${JSON.stringify(value, undefined, 2)}\n` }, data);
}
