import type { Readable } from "node:stream";
import type { z } from "zod";

/** Most characters of a line. */
const longest = 1024 * 1024;

/**
 * Reads a stream of JSON lines by a schema. Lines that do not fit the schema are left out: a newer version may have sent them.
 * @throws the stream's errors; an Error for a line that is too long or no JSON
 */
export async function* readLines<Schema extends z.ZodType>(
  stream: Readable,
  schema: Schema,
): AsyncGenerator<z.output<Schema>> {
  let rest = "";
  stream.setEncoding("utf8");
  for await (const chunk of stream as AsyncIterable<string>) {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > longest) throw new Error("a line longer than 1 MiB");
    for (const line of lines) {
      const parsed = schema.safeParse(JSON.parse(line));
      if (parsed.success) yield parsed.data;
    }
  }
}
